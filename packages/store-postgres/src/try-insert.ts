import {
  checkKey,
  checkOwnerId,
  checkSessionId,
  checkTtlMs,
  LockHandle,
  SessionDeadError,
} from '@dlock/lock-api'
import type { Kind } from './coalesce.ts'
import type { Row } from './execute.ts'
import { MINT, MINT_FOR_NEW_ROW, parseToken } from './fencing-token.ts'
import { epochMs, instant, leaseEnd, sessionLives } from './live.ts'
import { isSessionId } from './sessions.ts'
import { askStatement } from './statement.ts'

export interface Insertion {
  readonly key: string
  readonly ownerId: string
  readonly sessionId: string
  readonly ttlMs: number
}

/** The grant; or held, by that session if it seems to be dead. */
export type Inserted =
  | { readonly kind: 'granted'; readonly handle: LockHandle }
  | { readonly kind: 'held'; readonly deadHolder: string | undefined }
  | { readonly kind: 'dead'; readonly state: 'unknown' | 'expired' }

const SAME_LIVE_GRANT = 'e.session_id = EXCLUDED.session_id AND e.expires_at > now()'

/**
 * Free is what the row says: no row, or a lease that is over. A key that somebody else held when
 * the statement began is left alone: no row lock, no token, nothing written.
 *
 * That the holder's session is dead is no ground for a take-over here, but is reported: the caller
 * buries the session first (`sessions.ts`), and its grants end with it. To look at the session in
 * this statement would be wrong twice. The row is met in its newest version, but sessions are seen
 * as of the start, so a holder whose session is younger than that would look dead. And a heartbeat
 * in flight writes only to the session, so that nothing would order it with the take-over.
 */
const TRY_INSERT = askStatement(
  'try_insert',
  { key: 'text', owner_id: 'text', session_id: 'uuid', ttl_ms: 'bigint' },
  (asked) => `
  WITH asked AS MATERIALIZED (
    SELECT a.*, ${leaseEnd('a.ttl_ms')} AS expires_at,
      ${sessionLives('a.session_id')} AS lives,
      (
        SELECT e.session_id FROM lock_entry AS e
        WHERE e.lock_key = a.key AND e.session_id <> a.session_id AND e.expires_at > now()
      ) AS holder
    FROM ${asked} AS a
  ), granted AS (
    INSERT INTO lock_entry AS e
      (lock_key, owner_id, session_id, fencing_token, acquired_at, expires_at, wanted)
    SELECT key, owner_id, session_id, ${MINT_FOR_NEW_ROW}, now(), expires_at, false
    FROM asked WHERE lives AND holder IS NULL
    ON CONFLICT (lock_key) DO UPDATE SET
      owner_id = EXCLUDED.owner_id,
      session_id = EXCLUDED.session_id,
      fencing_token = CASE WHEN ${SAME_LIVE_GRANT} THEN e.fencing_token ELSE ${MINT} END,
      acquired_at = CASE WHEN ${SAME_LIVE_GRANT} THEN e.acquired_at ELSE now() END,
      expires_at = GREATEST(EXCLUDED.expires_at, CASE WHEN ${SAME_LIVE_GRANT} THEN e.expires_at END),
      wanted = e.wanted AND ${SAME_LIVE_GRANT}
    WHERE e.expires_at <= now() OR e.session_id = EXCLUDED.session_id
    RETURNING e.lock_key, e.fencing_token, ${epochMs('e.expires_at')} AS ends
  )
  SELECT lock_key, fencing_token, ends, NULL AS lives, NULL AS dead_holder FROM granted
  UNION ALL
  SELECT key, NULL, NULL, coalesce(lives::text, 'unknown'),
    CASE WHEN ${sessionLives('holder')} IS NOT TRUE THEN holder END
  FROM asked WHERE lives IS NOT TRUE OR holder IS NOT NULL`,
)

export const TRY_INSERTS: Kind<Insertion, Inserted> = {
  statement: TRY_INSERT,
  keyOf: ({ key }) => key,
  row: ({ key, ownerId, sessionId, ttlMs }) => [key, ownerId, sessionId, String(ttlMs)],
  answers(asks, rows, sentNanos) {
    const byKey = new Map(rows.map((row) => [row[0], row]))
    return asks.map((ask) => readInserted(ask, byKey.get(ask.key), sentNanos))
  },
}

function readInserted(ask: Insertion, row: Row | undefined, sentNanos: bigint): Inserted {
  // Free when the statement began, but somebody was quicker.
  if (row === undefined) return { kind: 'held', deadHolder: undefined }
  const [, token, ends, lives, deadHolder] = row
  if (typeof token === 'string') {
    return { kind: 'granted', handle: handleOf(ask, token, ends, sentNanos) }
  }
  if (lives === 'unknown') return { kind: 'dead', state: 'unknown' }
  if (lives === 'false') return { kind: 'dead', state: 'expired' }
  return { kind: 'held', deadHolder: deadHolder ?? undefined }
}

/** The deadline counts from before the statement left, and the lease from after it arrived. */
export function handleOf(
  { key, ownerId, sessionId, ttlMs }: Insertion,
  token: string,
  ends: string | null | undefined,
  sentNanos: bigint,
): LockHandle {
  const deadline = sentNanos + BigInt(ttlMs) * 1_000_000n
  return new LockHandle(key, ownerId, sessionId, parseToken(token), deadline, instant(ends))
}

/** How often a dead holder's session is buried for one call. More than once is a rare race. */
const MAX_BURIALS = 3

/** `insert` and `bury` are the store's coalesced statements. */
export async function tryInsert(
  asks: Insertion,
  insert: (ask: Insertion) => Promise<Inserted>,
  bury: (sessionId: string) => Promise<unknown>,
): Promise<LockHandle | undefined> {
  checkKey(asks.key)
  checkOwnerId(asks.ownerId)
  checkSessionId(asks.sessionId)
  checkTtlMs(asks.ttlMs)
  if (!isSessionId(asks.sessionId)) throw new SessionDeadError('unknown')
  for (let burials = 0; ; burials += 1) {
    const inserted = await insert(asks)
    if (inserted.kind === 'granted') return inserted.handle
    if (inserted.kind === 'dead') throw new SessionDeadError(inserted.state)
    if (inserted.deadHolder === undefined || burials === MAX_BURIALS) return undefined
    await bury(inserted.deadHolder)
  }
}
