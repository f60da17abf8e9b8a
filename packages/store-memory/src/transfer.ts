import {
  checkFencingToken,
  checkKey,
  checkOwnerId,
  checkSessionId,
  checkTtlMs,
  type NextHolder,
  type Transfer,
} from '@dlock/lock-api'
import type { MemoryState } from './memory-state.ts'

export function transfer(
  state: MemoryState,
  key: string,
  fencingToken: bigint,
  next: NextHolder,
): Transfer {
  checkKey(key)
  checkFencingToken(fencingToken)
  checkOwnerId(next.ownerId)
  checkSessionId(next.sessionId)
  checkTtlMs(next.ttlMs)
  const grant = state.grants.get(key)
  if (grant?.fencingToken !== fencingToken) return { released: false, granted: undefined }
  state.grants.delete(key)
  if (state.liveSession(next.sessionId) === undefined) {
    state.announce([grant])
    return { released: true, granted: undefined }
  }
  // Whoever waits elsewhere waits on: the mark passes to the new grant.
  const granted = state.grant(key, next.ownerId, next.sessionId, next.ttlMs, grant.wanted)
  return { released: true, granted: state.handleOf(granted, next.ttlMs) }
}
