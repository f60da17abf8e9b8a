import { type LockHandle } from '@dlock/lock-api'
import type { Kind } from './coalesce.ts'
import { epochMs, leaseEnd, sessionLives } from './live.ts'
import { askStatement } from './statement.ts'
import { handleOf } from './try-insert.ts'

export interface Extension {
  readonly key: string
  readonly fencingToken: bigint
  readonly ttlMs: number
}

/**
 * A grant's session was there before the grant, and the caller learnt the token from the grant, so
 * the statement sees the session whatever it waited for.
 */
const EXTEND = askStatement(
  'extend',
  { key: 'text', token: 'bigint', ttl_ms: 'bigint' },
  (asked) => `
  UPDATE lock_entry AS e
  SET expires_at = GREATEST(e.expires_at, ${leaseEnd('a.ttl_ms')})
  FROM ${asked} AS a
  WHERE e.lock_key = a.key AND e.fencing_token = a.token AND e.expires_at > now()
    AND ${sessionLives('e.session_id')}
  RETURNING e.lock_key, e.owner_id, e.session_id::text, e.fencing_token::text,
    ${epochMs('e.expires_at')}`,
)

/** `undefined`: lost. */
export const EXTENDS: Kind<Extension, LockHandle | undefined> = {
  statement: EXTEND,
  keyOf: ({ key }) => key,
  row: ({ key, fencingToken, ttlMs }) => [key, String(fencingToken), String(ttlMs)],
  answers(asks, rows, sentNanos) {
    const byKey = new Map(rows.map((row) => [row[0], row]))
    return asks.map(({ key, ttlMs }) => {
      const [, ownerId, sessionId, token, ends] = byKey.get(key) ?? []
      if (!ownerId || !sessionId || !token) return undefined
      return handleOf({ key, ownerId, sessionId, ttlMs }, token, ends, sentNanos)
    })
  },
}
