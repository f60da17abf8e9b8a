import { checkOwnerId, checkSessionId, checkTtlMs, type SessionState } from '@dlock/lock-api'
import { later, type MemoryState } from './memory-state.ts'

export function openSession(state: MemoryState, ownerId: string, ttlMs: number): string {
  checkOwnerId(ownerId)
  checkTtlMs(ttlMs)
  const sessionId = state.ids.uuid()
  state.sessionsOpened += 1
  state.sessions.set(sessionId, {
    sessionId,
    ownerId,
    ordinal: state.sessionsOpened,
    createdAt: state.clock.now(),
    endsAtNanos: state.inMs(ttlMs),
  })
  return sessionId
}

/** Only a session that lives is prolonged: a late heartbeat brings nothing back. */
export function heartbeat(state: MemoryState, sessionId: string, ttlMs: number): boolean {
  checkSessionId(sessionId)
  checkTtlMs(ttlMs)
  const session = state.liveSession(sessionId)
  if (session === undefined) return false
  session.endsAtNanos = later(session.endsAtNanos, state.inMs(ttlMs))
  return true
}

export function closeSession(state: MemoryState, sessionId: string): number {
  const released = state.liveGrantsOf(checkSessionId(sessionId))
  for (const grant of released) state.grants.delete(grant.key)
  state.sessions.delete(sessionId)
  state.announce(released)
  return released.length
}

export function locksOf(state: MemoryState, sessionId: string): ReadonlySet<string> {
  return new Set(state.liveGrantsOf(checkSessionId(sessionId)).map((grant) => grant.key))
}

export function describeSession(state: MemoryState, sessionId: string): SessionState {
  const session = state.liveSession(checkSessionId(sessionId))
  if (session === undefined) {
    return { state: state.sessions.has(sessionId) ? 'expired' : 'unknown' }
  }
  return {
    state: 'live',
    ownerId: session.ownerId,
    remainingMs: state.msUntil(session.endsAtNanos),
  }
}
