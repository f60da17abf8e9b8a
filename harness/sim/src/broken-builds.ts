import { LockHandle, type NextHolder, SessionDeadError, type Transfer } from '@dlock/lock-api'
import type { LocalService } from '@dlock/lock-client'
import type { MemoryStore } from '@dlock/store-memory'
import type { Clock } from '@dlock/system'

/** The store's deciding verbs, which a broken build may replace. */
export interface StoreVerbs
  extends Pick<
    MemoryStore,
    'tryInsert' | 'extend' | 'deleteIfOwner' | 'heartbeat' | 'reapExpired'
  > {
  transfer(key: string, token: bigint, next: NextHolder): Promise<Transfer>
}

/** What is broken on purpose, so that it is known that the simulation would notice. */
export interface Breakage {
  /** The guard lets every token pass. */
  readonly fenceIsOff?: boolean
  /** The guard checks, then waits so many milliseconds, then writes. */
  readonly readThenWrite?: number
  /** The guard's fence is gone when its process is. */
  readonly fenceInMemory?: boolean
  /** The guard admits an equal token, so a repeated claim is another one. */
  readonly claimIsPlain?: boolean
  /** A request that got no answer is made again as if it were another. */
  readonly newRequestPerTry?: boolean
  /** The client counts on more of a lease than it may. */
  readonly safetyMargin?: number
  readonly clock?: (clock: Clock) => Clock
  readonly service?: (service: LocalService, clock: Clock) => LocalService
  /** Called for each life of the database, with what its disk held. */
  readonly store?: (verbs: StoreVerbs, store: MemoryStore) => Partial<StoreVerbs>
  /** How the operator restores: as documented unless something is left out. */
  readonly restoreWithout?: 'advancing' | 'waiting' | 'reading the logs'
}

/** A bug of a lock service or of its user, by what is wrong, and the breakage that has it. */
export const brokenBuilds: Readonly<Record<string, Breakage>> = {
  'the guard checks no fence': { fenceIsOff: true },
  'the guard reads, then writes': { readThenWrite: 30 },
  'the guard keeps its fence in memory': { fenceInMemory: true },
  'the guard admits an equal token': { claimIsPlain: true },
  'a write without an answer is made again as a new one': { newRequestPerTry: true },
  'the token counter restarts with the database': { store: tokensRestart },
  'a take-over mints no token': { store: takeOverWithoutToken },
  'a release ignores the token': { store: releaseIgnoresToken },
  'a renewal resurrects': { store: renewalResurrects },
  'a heartbeat upserts the session': { store: heartbeatUpserts },
  'the reaper goes by the wall clock of its caller': { store: reapsByWallClock },
  'a deadline counts from the reply': { service: deadlineFromReply },
  'a lease counts whole, without a margin': { safetyMargin: 0 },
  'a suspension is not noticed': { clock: withoutBootClock },
  'a restore does not advance the tokens': { restoreWithout: 'advancing' },
  'a restore waits for no lease': { restoreWithout: 'waiting' },
  'a restore advances above the fences only': { restoreWithout: 'reading the logs' },
}

/** The grants' tokens as shown outside, where they differ from the store's own. */
class FalseTokens {
  readonly #real = new Map<string, bigint>()

  show(handle: LockHandle, token: bigint): LockHandle {
    const { key, ownerId, sessionId, clientDeadlineNanos, serverExpiry } = handle
    this.#real.set(`${key} ${token}`, handle.fencingToken)
    return new LockHandle(key, ownerId, sessionId, token, clientDeadlineNanos, serverExpiry)
  }

  real(key: string, token: bigint): bigint {
    return this.#real.get(`${key} ${token}`) ?? token
  }
}

function tokensRestart(verbs: StoreVerbs, store: MemoryStore): Partial<StoreVerbs> {
  const tokens = new FalseTokens()
  const before = store.capabilities().tokens?.highestToken()
  const show = async <T extends LockHandle | undefined>(handle: T): Promise<LockHandle | T> => {
    const used = (await before) ?? 0n
    if (handle === undefined || handle.fencingToken <= used) return handle
    return tokens.show(handle, handle.fencingToken - used)
  }
  return {
    tryInsert: async (...args) => show(await verbs.tryInsert(...args)),
    extend: async (key, token, ttlMs) =>
      show(await verbs.extend(key, tokens.real(key, token), ttlMs)),
    deleteIfOwner: (key, token) => verbs.deleteIfOwner(key, tokens.real(key, token)),
    transfer: async (key, token, next) => {
      const { released, granted } = await verbs.transfer(key, tokens.real(key, token), next)
      return { released, granted: await show(granted) }
    },
  }
}

function takeOverWithoutToken(verbs: StoreVerbs): Partial<StoreVerbs> {
  const tokens = new FalseTokens()
  const last = new Map<string, bigint>()
  return {
    tryInsert: async (key, ...args) => {
      const handle = await verbs.tryInsert(key, ...args)
      if (handle === undefined) return undefined
      const old = last.get(key)
      last.set(key, old ?? handle.fencingToken)
      return old === undefined ? handle : tokens.show(handle, old)
    },
    extend: async (key, token, ttlMs) => {
      const handle = await verbs.extend(key, tokens.real(key, token), ttlMs)
      return handle && tokens.show(handle, token)
    },
    deleteIfOwner: async (key, token) => {
      const isDeleted = await verbs.deleteIfOwner(key, tokens.real(key, token))
      if (isDeleted) last.delete(key)
      return isDeleted
    },
    transfer: async (key, token, next) => {
      const passed = await verbs.transfer(key, tokens.real(key, token), next)
      if (passed.released) last.delete(key)
      return passed
    },
  }
}

function releaseIgnoresToken(verbs: StoreVerbs, store: MemoryStore): Partial<StoreVerbs> {
  return {
    deleteIfOwner: async (key, token) => {
      const held = await store.read(key)
      return verbs.deleteIfOwner(key, held?.fencingToken ?? token)
    },
  }
}

function renewalResurrects(verbs: StoreVerbs): Partial<StoreVerbs> {
  const tokens = new FalseTokens()
  const holders = new Map<string, NextHolder>()
  return {
    tryInsert: async (key, ownerId, sessionId, ttlMs) => {
      const handle = await verbs.tryInsert(key, ownerId, sessionId, ttlMs)
      if (handle) holders.set(`${key} ${handle.fencingToken}`, { ownerId, sessionId, ttlMs })
      return handle
    },
    extend: async (key, token, ttlMs) => {
      const handle = await verbs.extend(key, tokens.real(key, token), ttlMs)
      if (handle !== undefined) return tokens.show(handle, token)
      const holder = holders.get(`${key} ${token}`)
      if (holder === undefined) return undefined
      try {
        const { ownerId, sessionId } = holder
        const again = await verbs.tryInsert(key, ownerId, sessionId, ttlMs)
        return again && tokens.show(again, token)
      } catch (error) {
        if (error instanceof SessionDeadError) return undefined
        throw error
      }
    },
    deleteIfOwner: (key, token) => verbs.deleteIfOwner(key, tokens.real(key, token)),
  }
}

function heartbeatUpserts(verbs: StoreVerbs): Partial<StoreVerbs> {
  return {
    heartbeat: async (sessionId, ttlMs) => {
      await verbs.heartbeat(sessionId, ttlMs)
      return true
    },
  }
}

function reapsByWallClock(verbs: StoreVerbs, store: MemoryStore): Partial<StoreVerbs> {
  return {
    reapExpired: async (now) => {
      const { items } = (await store
        .capabilities()
        .listing?.listLocks({ prefix: '', cursor: undefined, limit: 1_000 })) ?? { items: [] }
      const over = items.filter(({ expiresAt }) => expiresAt <= now)
      for (const { key, fencingToken } of over) await verbs.deleteIfOwner(key, fencingToken)
      return over.length
    },
  }
}

/** By stretching each lease by how long its answer took, which comes to the same. */
function deadlineFromReply(service: LocalService, clock: Clock): LocalService {
  let tookMs = 0
  const timed = async <T>(call: Promise<T>): Promise<T> => {
    const sent = clock.monotonicNanos()
    const answer = await call
    tookMs = Number(clock.monotonicNanos() - sent) / 1_000_000
    return answer
  }
  return {
    openSession: (...args) => service.openSession(...args),
    heartbeat: (...args) => service.heartbeat(...args),
    closeSession: (...args) => service.closeSession(...args),
    locksOf: (...args) => service.locksOf(...args),
    renewGrant: async (...args) => {
      if (service.renewGrant === undefined) throw new TypeError('the link renews')
      return timed(service.renewGrant(...args))
    },
    forSession: (sessionId) => {
      const bound = service.forSession(sessionId)
      return { ...bound, acquire: (...args) => timed(bound.acquire(...args)) }
    },
    grantedTtlMs: (ttlMs) => ttlMs + Math.floor(tookMs / 0.7),
  }
}

function withoutBootClock(clock: Clock): Clock {
  return { ...clock, bootNanos: () => clock.monotonicNanos() }
}
