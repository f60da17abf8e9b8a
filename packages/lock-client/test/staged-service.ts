import type { LockHandle, LockInfo, LockOutcome, LockService } from '@dlock/lock-api'
import { MemoryStore } from '@dlock/store-memory'
import { type ManualClock, seededIds } from '@dlock/testing'
import type { LocalService } from '../src/index.ts'

type Name =
  | 'openSession'
  | 'heartbeat'
  | 'closeSession'
  | 'acquire'
  | 'renew'
  | 'release'
  | 'inspect'
  | 'forceRevoke'

/** What becomes of a call. `real` carries it out. */
type Direction = (real: () => Promise<unknown>, call: Call) => Promise<unknown>

export interface Call {
  readonly name: Name
  readonly args: readonly unknown[]
}

/**
 * A service over a real store whose calls follow a script: any of them may fail, answer late, or
 * answer though nothing was done. It never waits: a call that wants to wait is directed.
 */
export class StagedService implements LocalService {
  readonly store: MemoryStore
  /** As they came. */
  readonly calls: Call[] = []
  readonly #directions = new Map<Name, Direction[]>()
  readonly #standing = new Map<Name, Direction>()
  /** What each grant was last asked for with: an engine renews by that. */
  readonly #ttlMs = new Map<bigint, number>()

  constructor(clock: ManualClock) {
    this.store = new MemoryStore({ clock, ids: seededIds(1) })
  }

  /** The next call of that name, and then the next, follow `directions`, one each. */
  next(name: Name, ...directions: Direction[]): void {
    this.#directions.set(name, [...(this.#directions.get(name) ?? []), ...directions])
  }

  /** Every call of that name that has no direction of its own, until it is called again without. */
  always(name: Name, direction?: Direction): void {
    if (direction === undefined) this.#standing.delete(name)
    else this.#standing.set(name, direction)
  }

  count(name: Name): number {
    return this.calls.filter((call) => call.name === name).length
  }

  openSession(ownerId: string, ttlMs: number): Promise<string> {
    return this.#call('openSession', [ownerId, ttlMs], () => this.store.openSession(ownerId, ttlMs))
  }

  heartbeat(sessionId: string, ttlMs: number): Promise<boolean> {
    return this.#call('heartbeat', [sessionId], () => this.store.heartbeat(sessionId, ttlMs))
  }

  closeSession(sessionId: string): Promise<number> {
    return this.#call('closeSession', [sessionId], () => this.store.closeSession(sessionId))
  }

  locksOf(sessionId: string): Promise<ReadonlySet<string>> {
    return this.store.locksOf(sessionId)
  }

  forSession(sessionId: string): LockService {
    const { store } = this
    const insert = async (key: string, ownerId: string, ttlMs: number) => {
      const handle = await store.tryInsert(key, ownerId, sessionId, ttlMs)
      if (handle !== undefined) this.#ttlMs.set(handle.fencingToken, ttlMs)
      return handle
    }
    return {
      acquire: (key, ownerId, ttlMs, maxWaitMs, signal) =>
        this.#call<LockHandle | undefined>('acquire', [key, ttlMs, maxWaitMs, signal], () =>
          insert(key, ownerId, ttlMs),
        ),
      tryAcquire: insert,
      renew: (handle) =>
        this.#call<LockHandle | undefined>('renew', [handle.key], () =>
          store.extend(handle.key, handle.fencingToken, this.#ttlMs.get(handle.fencingToken) ?? 1),
        ),
      release: (handle) =>
        this.#call<boolean>('release', [handle.key], () =>
          store.deleteIfOwner(handle.key, handle.fencingToken),
        ),
      inspect: (key) => this.#call<LockInfo | undefined>('inspect', [key], () => store.read(key)),
      forceRevoke: (key, operator, reason) =>
        this.#call<LockOutcome>('forceRevoke', [key], () => store.revoke(key, operator, reason)),
    }
  }

  #call<T>(name: Name, args: readonly unknown[], real: () => Promise<T>): Promise<T> {
    const call = { name, args }
    this.calls.push(call)
    const direction = this.#directions.get(name)?.shift() ?? this.#standing.get(name)
    return direction === undefined ? real() : (direction(real, call) as Promise<T>)
  }
}
