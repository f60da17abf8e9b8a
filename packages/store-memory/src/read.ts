import { checkKey, type LockInfo } from '@dlock/lock-api'
import type { MemoryState } from './memory-state.ts'

export function read(state: MemoryState, key: string): LockInfo | undefined {
  const grant = state.liveGrant(checkKey(key))
  return grant && state.infoOf(grant)
}
