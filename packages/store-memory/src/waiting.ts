import { checkKey, type Unsubscribe } from '@dlock/lock-api'
import { earlier, type MemoryState } from './memory-state.ts'

export function want(state: MemoryState, key: string): number | undefined {
  const grant = state.liveGrant(checkKey(key))
  if (grant === undefined) return undefined
  grant.wanted = true
  const session = state.requireLiveSession(grant.sessionId)
  return state.msUntil(earlier(grant.endsAtNanos, session.endsAtNanos))
}

export function subscribe(state: MemoryState, onFreed: (key: string) => void): Unsubscribe {
  // A wrapper of its own: the same function may subscribe twice.
  const listener = (key: string): void => onFreed(key)
  state.listeners.add(listener)
  return async () => void state.listeners.delete(listener)
}
