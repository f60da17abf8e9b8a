import { LockHandle, LockOutcome, type SessionRegistry, type SessionScope } from '@dlock/lock-api'
import type { Clock } from '@dlock/system'

/**
 * A service that says yes to everything: every session lives, every lock is granted to whoever asks,
 * with tokens that count up, and renewed. It excludes nobody; put a real one (an engine over a memory
 * store) behind the script where exclusion matters.
 */
export function agreeableService(clock: Clock): SessionRegistry & SessionScope {
  let counter = 0n
  const sessions = new Map<string, Set<string>>()
  const leases = new Map<bigint, number>()
  const endsIn = (ms: number): bigint => clock.monotonicNanos() + BigInt(ms) * 1_000_000n
  const wallIn = (ms: number): Date => new Date(clock.now().getTime() + ms)

  return {
    openSession: async () => {
      const sessionId = `session-${sessions.size + 1}`
      sessions.set(sessionId, new Set())
      return sessionId
    },
    heartbeat: async () => true,
    closeSession: async (sessionId) => {
      const released = sessions.get(sessionId)?.size ?? 30_000
      sessions.get(sessionId)?.clear()
      return released
    },
    locksOf: async (sessionId) => new Set(sessions.get(sessionId)),
    forSession: (sessionId) => {
      const grant = async (key: string, ownerId: string, ttlMs: number): Promise<LockHandle> => {
        counter += 1n
        leases.set(counter, ttlMs)
        sessions.get(sessionId)?.add(key)
        return new LockHandle(key, ownerId, sessionId, counter, endsIn(ttlMs), wallIn(ttlMs))
      }
      return {
        acquire: grant,
        tryAcquire: grant,
        renew: async ({ key, ownerId, fencingToken }) => {
          const ttlMs = leases.get(fencingToken) ?? 30_000
          const end = endsIn(ttlMs)
          return new LockHandle(key, ownerId, sessionId, fencingToken, end, wallIn(ttlMs))
        },
        release: async ({ key }) => sessions.get(sessionId)?.delete(key) ?? false,
        inspect: async () => undefined,
        forceRevoke: async (key) => LockOutcome.notHeld(key),
      }
    },
  }
}
