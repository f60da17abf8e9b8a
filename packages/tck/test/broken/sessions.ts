import { LockHandle, SessionDeadError, type StoreCapabilities } from '@dlock/lock-api'
import { MemoryStore } from '@dlock/store-memory'
import { type Clock, systemIds } from '@dlock/system'
import { type BrokenStore, OnClock } from './broken-store.ts'

const HOUR_MS = 3_600_000

class HeartbeatUpserts extends MemoryStore {
  #nextId: string | undefined

  constructor(clock: Clock) {
    super({ clock, ids: { uuid: () => this.#nextId ?? systemIds.uuid() } })
  }

  override async heartbeat(sessionId: string, ttlMs: number) {
    if (await super.heartbeat(sessionId, ttlMs)) return true
    this.#nextId = sessionId
    await this.openSession('worker', ttlMs)
    this.#nextId = undefined
    return true
  }
}

class DeadSessionIsGrantedLocks extends HeartbeatUpserts {
  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    await this.heartbeat(asked[2], HOUR_MS)
    return super.tryInsert(...asked)
  }
}

class SessionsNeverDie extends OnClock {
  override async openSession(ownerId: string, ttlMs: number) {
    const forEver = Number.isInteger(ttlMs) && ttlMs > 0 && ttlMs < HOUR_MS ? HOUR_MS : ttlMs
    return super.openSession(ownerId, forEver)
  }
}

/** `… DO UPDATE WHERE expires_at <= now()`, without a look at the holder's session. */
class DeadSessionKeepsItsLocks extends OnClock {
  readonly #leases = new Map<string, LockHandle>()

  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const lease = this.#leases.get(asked[0])
    const runs = lease !== undefined && lease.clientDeadlineNanos > this.clock.monotonicNanos()
    if (runs && lease.sessionId !== asked[2]) return undefined
    const grant = await super.tryInsert(...asked)
    if (grant !== undefined) this.#leases.set(grant.key, grant)
    return grant
  }

  override async deleteIfOwner(key: string, fencingToken: bigint) {
    this.#leases.delete(key)
    return super.deleteIfOwner(key, fencingToken)
  }

  override async closeSession(sessionId: string) {
    for (const key of await this.locksOf(sessionId)) this.#leases.delete(key)
    return super.closeSession(sessionId)
  }
}

class ClosingForgetsLocks extends OnClock {
  override async closeSession(sessionId: string) {
    return (await this.locksOf(sessionId)).size
  }
}

class ClosingTakesLookAlikes extends OnClock {
  override async closeSession(sessionId: string) {
    for (const key of await this.locksOf(sessionId)) {
      const page = await this.all.listing.listLocks({ prefix: key, cursor: undefined, limit: 99 })
      for (const info of page.items.slice(1)) await this.deleteIfOwner(info.key, info.fencingToken)
    }
    return super.closeSession(sessionId)
  }
}

class HeartbeatShortens extends OnClock {
  readonly #ends = new Map<string, bigint>()

  override async heartbeat(sessionId: string, ttlMs: number) {
    const alive = await super.heartbeat(sessionId, ttlMs)
    if (alive) this.#ends.set(sessionId, this.clock.monotonicNanos() + BigInt(ttlMs) * 1_000_000n)
    return alive
  }

  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    for (const [sessionId, end] of this.#ends) {
      if (end <= this.clock.monotonicNanos()) this.loseSession(sessionId)
    }
    return super.tryInsert(...asked)
  }
}

class HeartbeatOnlyPretends extends OnClock {
  override async heartbeat(sessionId: string, ttlMs: number) {
    return super.heartbeat(sessionId, Math.min(ttlMs, 1))
  }
}

class SessionIdsRepeat extends MemoryStore {
  constructor(clock: Clock) {
    super({ clock, ids: { uuid: () => 'the one session' } })
  }
}

class EverySessionIsDescribedAsLive extends OnClock {
  override capabilities(): StoreCapabilities {
    const live = { state: 'live', ownerId: 'somebody', remainingMs: HOUR_MS } as const
    return { ...this.all, sessions: { describeSession: async () => live } }
  }
}

class EverySessionIsExpired extends OnClock {
  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    return super.tryInsert(...asked).catch((error: unknown) => {
      throw error instanceof SessionDeadError ? new SessionDeadError('expired') : error
    })
  }
}

class OneSessionSeesAllLocks extends OnClock {
  override async locksOf(sessionId: string) {
    const own = await super.locksOf(sessionId)
    if (own.size === 0) return own
    const page = await this.all.listing.listLocks({ prefix: '', cursor: undefined, limit: 1_000 })
    return new Set(page.items.map((info) => info.key))
  }
}

export const sessionsBroken: readonly BrokenStore[] = [
  {
    store: HeartbeatUpserts,
    fails: [
      'a session that was never opened is not brought to life by a heartbeat',
      'a session that has expired is not brought to life by a heartbeat',
      'a session that was closed is not brought to life by a heartbeat',
      'a session that was killed is not brought to life by a heartbeat',
    ],
  },
  {
    store: DeadSessionIsGrantedLocks,
    fails: [
      'a session that was never opened is granted nothing',
      'a session that has no id that this store would give is granted nothing',
      'a session that has expired is granted nothing',
      'a session that was closed is granted nothing',
      'a session that was killed is granted nothing',
    ],
  },
  {
    store: SessionsNeverDie,
    fails: [
      'FR-04: a session that gets no heartbeat ends in time, and its locks can be had',
      'a session that has expired is granted nothing',
    ],
  },
  {
    store: DeadSessionKeepsItsLocks,
    fails: [
      'FR-04: the lock of a session that expired is lost, and can be had at once',
      'FR-04: the lock of a session that was killed is lost, and can be had at once',
    ],
  },
  {
    store: ClosingForgetsLocks,
    fails: [
      'FR-04: closing a session releases every lock on it and no other, and says how many',
      'a session that closes while it acquires leaves no grant behind',
    ],
  },
  {
    store: ClosingTakesLookAlikes,
    fails: ['P-02: a session’s end releases its own keys, not those that begin alike'],
  },
  { store: HeartbeatShortens, fails: ['a heartbeat never shortens a session'] },
  {
    store: HeartbeatOnlyPretends,
    fails: ['a heartbeat prolongs a session, and with it the life of its locks'],
  },
  { store: SessionIdsRepeat, fails: ['session ids do not repeat'] },
  {
    store: EverySessionIsDescribedAsLive,
    fails: [
      'a session that has expired is described as dead',
      'a live session is described with its owner and what it has left',
    ],
  },
  { store: EverySessionIsExpired, fails: ['a session that nobody opened is unknown, not expired'] },
  {
    store: OneSessionSeesAllLocks,
    fails: ['the locks of a session are the keys of its live grants, and of nobody else'],
  },
]
