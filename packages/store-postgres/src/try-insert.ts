import {
  checkKey,
  checkOwnerId,
  checkSessionId,
  checkTtlMs,
  LockHandle,
  SessionDeadError,
} from '@dlock/lock-api'
import type { Kind } from './coalesce.ts'
import { MINT, MINT_FOR_NEW_ROW, parseToken } from './fencing-token.ts'
import { epochMs, instant, leaseEnd, sessionLives } from './live.ts'
import { isSessionId } from './sessions.ts'
import { askStatement, type Columns } from './statement.ts'

export interface Insertion {
  readonly key: string
  readonly ownerId: string
  readonly sessionId: string
  readonly ttlMs: number
}

const SAME_LIVE_GRANT = 'e.session_id = EXCLUDED.session_id AND e.expires_at > now()'

const COLUMNS: Columns = { key: 'text', owner_id: 'text', session_id: 'uuid', ttl_ms: 'bigint' }

/**
 * Free is what the row says: no row, or a lease that is over. A key that somebody else held when
 * the statement began is left alone: no row lock, no token, nothing written.
 *
 * That the holder's session is dead is no ground for a take-over here: the caller buries the
 * session first (`sessions.ts`), and its grants end with it. To look at the session in this
 * statement would be wrong twice. The row is met in its newest version, but sessions are seen as of
 * the start, so a holder whose session is younger than that would look dead. And a heartbeat in
 * flight writes only to the session, so that nothing would order it with the take-over.
 */
const TRY_INSERT = askStatement(
  'try_insert',
  COLUMNS,
  (asked) => `
  INSERT INTO lock_entry AS e
    (lock_key, owner_id, session_id, fencing_token, acquired_at, expires_at, wanted)
  SELECT a.key, a.owner_id, a.session_id, ${MINT_FOR_NEW_ROW}, now(), ${leaseEnd('a.ttl_ms')}, false
  FROM ${asked} AS a
    JOIN lock_session AS s ON s.session_id = a.session_id AND s.expires_at > now()
    LEFT JOIN lock_entry AS h ON h.lock_key = a.key
  WHERE h.session_id = a.session_id OR h.expires_at <= now() OR h.lock_key IS NULL
  ON CONFLICT (lock_key) DO UPDATE SET
    owner_id = EXCLUDED.owner_id,
    session_id = EXCLUDED.session_id,
    fencing_token = CASE WHEN ${SAME_LIVE_GRANT} THEN e.fencing_token ELSE ${MINT} END,
    acquired_at = CASE WHEN ${SAME_LIVE_GRANT} THEN e.acquired_at ELSE now() END,
    expires_at = GREATEST(EXCLUDED.expires_at, CASE WHEN ${SAME_LIVE_GRANT} THEN e.expires_at END),
    wanted = e.wanted AND ${SAME_LIVE_GRANT}
  WHERE e.expires_at <= now() OR e.session_id = EXCLUDED.session_id
  RETURNING e.lock_key, e.fencing_token::text, ${epochMs('e.expires_at')}`,
)

export const INSERTIONS: Kind<Insertion, LockHandle | undefined> = {
  statement: TRY_INSERT,
  keyOf: ({ key }) => key,
  row: ({ key, ownerId, sessionId, ttlMs }) => [key, ownerId, sessionId, String(ttlMs)],
  answers(asks, rows, sentNanos) {
    const byKey = new Map(rows.map((row) => [row[0], row]))
    return asks.map((ask) => {
      const [, token, ends] = byKey.get(ask.key) ?? []
      return token ? handleOf(ask, token, ends, sentNanos) : undefined
    })
  },
}

/** Why nothing was granted; asked for only then, so that a grant costs nothing more. */
export type Refusal =
  | { readonly kind: 'dead'; readonly state: 'unknown' | 'expired' }
  | { readonly kind: 'held'; readonly deadHolder: string | undefined }

const WHY_REFUSED = askStatement(
  'why_refused',
  { key: 'text', session_id: 'uuid' },
  (asked) => `
  SELECT a.key, coalesce(${sessionLives('a.session_id')}::text, 'unknown'),
    CASE WHEN ${sessionLives('e.session_id')} IS NOT TRUE THEN e.session_id::text END
  FROM ${asked} AS a LEFT JOIN lock_entry AS e ON e.lock_key = a.key AND e.expires_at > now()`,
)

export const REFUSALS: Kind<Insertion, Refusal> = {
  statement: WHY_REFUSED,
  keyOf: ({ key }) => key,
  row: ({ key, sessionId }) => [key, sessionId],
  answers(asks, rows) {
    const byKey = new Map(rows.map((row) => [row[0], row]))
    return asks.map(({ key }) => {
      const [, lives, deadHolder] = byKey.get(key) ?? []
      if (lives === 'true') return { kind: 'held', deadHolder: deadHolder ?? undefined }
      return { kind: 'dead', state: lives === 'false' ? 'expired' : 'unknown' }
    })
  },
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

/** The store's statements that this verb is made of. */
export interface InsertionSteps {
  insert(ask: Insertion): Promise<LockHandle | undefined>
  whyRefused(ask: Insertion): Promise<Refusal>
  bury(sessionId: string): Promise<unknown>
}

/** How often a dead holder's session is buried for one call. More than once is a rare race. */
const MAX_BURIALS = 3

export async function tryInsert(
  steps: InsertionSteps,
  ask: Insertion,
): Promise<LockHandle | undefined> {
  checkKey(ask.key)
  checkOwnerId(ask.ownerId)
  checkSessionId(ask.sessionId)
  checkTtlMs(ask.ttlMs)
  if (!isSessionId(ask.sessionId)) throw new SessionDeadError('unknown')
  for (let burials = 0; ; burials += 1) {
    const handle = await steps.insert(ask)
    if (handle !== undefined) return handle
    const refusal = await steps.whyRefused(ask)
    if (refusal.kind === 'dead') throw new SessionDeadError(refusal.state)
    if (refusal.deadHolder === undefined || burials === MAX_BURIALS) return undefined
    await steps.bury(refusal.deadHolder)
  }
}
