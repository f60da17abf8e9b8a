import type { Kind } from './coalesce.ts'
import { sessionLives } from './live.ts'
import { askStatement } from './statement.ts'

/** Where the ends of wanted grants are announced: the payload is the key. */
export const CHANNEL = 'dlock_freed'

/**
 * Of a freed row: announces it if somebody wants it, and else costs nothing. Announcing takes a
 * lock of the whole database at commit, so a release that nobody waits for does without.
 */
export const ANNOUNCE: string = `CASE WHEN wanted THEN pg_notify('${CHANNEL}', lock_key)::text END`

/**
 * Writes only when the mark is not set yet. When the row changes in between, the answer is "try
 * now", which is always right: the attempt decides.
 */
const WANT = askStatement(
  'want',
  { key: 'text' },
  (asked) => `
  WITH asked AS MATERIALIZED (
    SELECT * FROM ${asked} AS a
  ), marked AS (
    UPDATE lock_entry AS e SET wanted = true FROM asked AS a
    WHERE e.lock_key = a.key AND NOT e.wanted AND e.expires_at > now()
      AND ${sessionLives('e.session_id')}
    RETURNING e.lock_key, e.session_id, e.expires_at
  ), wanted AS (
    SELECT lock_key, session_id, expires_at FROM marked
    UNION ALL
    SELECT e.lock_key, e.session_id, e.expires_at
    FROM asked AS a JOIN lock_entry AS e ON e.lock_key = a.key AND e.wanted
  )
  SELECT w.lock_key,
    ceil(date_part('epoch', LEAST(w.expires_at, s.expires_at) - now()) * 1000)::text
  FROM wanted AS w JOIN lock_session AS s ON s.session_id = w.session_id
  WHERE w.expires_at > now() AND s.expires_at > now()`,
)

/** The milliseconds until the grant ends; `undefined`: try now. */
export const WANTS: Kind<string, number | undefined> = {
  statement: WANT,
  keyOf: (key) => key,
  row: (key) => [key],
  answers(keys, rows) {
    const leftMs = new Map(rows.map(([key, left]) => [key, Number(left)]))
    return keys.map((key) => leftMs.get(key))
  },
}
