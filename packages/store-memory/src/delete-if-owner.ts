import { checkFencingToken, checkKey } from '@dlock/lock-api'
import type { MemoryState } from './memory-state.ts'

export function deleteIfOwner(state: MemoryState, key: string, fencingToken: bigint): boolean {
  checkKey(key)
  checkFencingToken(fencingToken)
  const grant = state.grants.get(key)
  if (grant?.fencingToken !== fencingToken) return false
  state.grants.delete(key)
  state.announce([grant])
  return true
}
