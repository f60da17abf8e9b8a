import {
  checkKey,
  checkOwnerId,
  checkSessionId,
  checkTtlMs,
  type LockHandle,
} from '@dlock/lock-api'
import { later, type MemoryState } from './memory-state.ts'

export function tryInsert(
  state: MemoryState,
  key: string,
  ownerId: string,
  sessionId: string,
  ttlMs: number,
): LockHandle | undefined {
  checkKey(key)
  checkOwnerId(ownerId)
  checkSessionId(sessionId)
  checkTtlMs(ttlMs)
  state.requireLiveSession(sessionId)
  const held = state.liveGrant(key)
  if (held === undefined) return state.handleOf(state.grant(key, ownerId, sessionId, ttlMs), ttlMs)
  if (held.sessionId !== sessionId) return undefined
  // The session asks again, so its first answer was lost: the same grant and token, or else the
  // retry would fence out the very holder that made it (decision 3). The new answer's deadline
  // counts from now, so the lease must as well.
  held.endsAtNanos = later(held.endsAtNanos, state.inMs(ttlMs))
  return state.handleOf(held, ttlMs)
}
