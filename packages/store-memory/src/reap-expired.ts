import { checkInstant } from '@dlock/lock-api'
import { earlier, type Grant, type MemoryState } from './memory-state.ts'

/** For so long a dead session is answered with "expired", and then with "unknown". */
const REMEMBER_DEAD_SESSION_MS = 600_000

export function reapExpired(state: MemoryState, now: Date): number {
  const nowMs = checkInstant(now, 'now')
  let reaped = 0
  for (const grant of state.grants.values()) {
    if (!isOver(state, endOf(state, grant), nowMs)) continue
    state.grants.delete(grant.key)
    reaped += 1
  }
  for (const session of state.sessions.values()) {
    const forgetAt = session.endsAtNanos + BigInt(REMEMBER_DEAD_SESSION_MS) * 1_000_000n
    if (isOver(state, forgetAt, nowMs)) state.sessions.delete(session.sessionId)
  }
  return reaped
}

/** A grant ends with its lease or its session, whichever is first; a session that is gone, before. */
function endOf(state: MemoryState, grant: Grant): bigint {
  const session = state.sessions.get(grant.sessionId)
  return session === undefined ? 0n : earlier(grant.endsAtNanos, session.endsAtNanos)
}

/** By this store's clock and by the caller's: a caller whose clock runs ahead reaps nothing alive. */
function isOver(state: MemoryState, endNanos: bigint, nowMs: number): boolean {
  return !state.isAhead(endNanos) && state.wallTimeOf(endNanos).getTime() <= nowMs
}
