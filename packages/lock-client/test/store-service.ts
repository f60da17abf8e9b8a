import type { LockService, LockStore, SessionRegistry, SessionScope } from '@dlock/lock-api'

/** The plainest service over a store: one call is one step. It never waits: a script does. */
export function storeService(store: LockStore & SessionRegistry): SessionRegistry & SessionScope {
  /** What each grant was last asked for with: it is renewed by that. */
  const ttls = new Map<bigint, number>()
  const forSession = (sessionId: string): LockService => {
    const insert: LockService['tryAcquire'] = async (key, ownerId, ttlMs) => {
      const handle = await store.tryInsert(key, ownerId, sessionId, ttlMs)
      if (handle !== undefined) ttls.set(handle.fencingToken, ttlMs)
      return handle
    }
    return {
      acquire: insert,
      tryAcquire: insert,
      renew: ({ key, fencingToken }) =>
        store.extend(key, fencingToken, ttls.get(fencingToken) ?? 1),
      release: ({ key, fencingToken }) => store.deleteIfOwner(key, fencingToken),
      inspect: (key) => store.read(key),
      forceRevoke: (key, operator, reason) => store.revoke(key, operator, reason),
    }
  }
  return {
    openSession: (ownerId, ttlMs) => store.openSession(ownerId, ttlMs),
    heartbeat: (sessionId, ttlMs) => store.heartbeat(sessionId, ttlMs),
    closeSession: (sessionId) => store.closeSession(sessionId),
    locksOf: (sessionId) => store.locksOf(sessionId),
    forSession,
  }
}
