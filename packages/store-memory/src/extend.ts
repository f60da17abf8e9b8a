import { checkFencingToken, checkKey, checkTtlMs, type LockHandle } from '@dlock/lock-api'
import { later, type MemoryState } from './memory-state.ts'

export function extend(
  state: MemoryState,
  key: string,
  fencingToken: bigint,
  ttlMs: number,
): LockHandle | undefined {
  checkKey(key)
  checkFencingToken(fencingToken)
  checkTtlMs(ttlMs)
  const grant = state.liveGrant(key)
  if (grant?.fencingToken !== fencingToken) return undefined
  grant.endsAtNanos = later(grant.endsAtNanos, state.inMs(ttlMs))
  return state.handleOf(grant, ttlMs)
}
