import type { LockHandle, LockService } from '@dlock/lock-api'
import { MemoryStore } from '@dlock/store-memory'
import { ManualClock, seededIds, seededRandom } from '@dlock/testing'
import { type EngineOptions, LockEngine, type LockEvent } from '../src/index.ts'
import { StagedStore, type StagedStoreOptions } from './staged-store.ts'

/** A session's service with its owner filled in. */
export interface Worker {
  readonly name: string
  readonly sessionId: string
  readonly locks: LockService
  readonly take: (
    key: string,
    maxWaitMs?: number,
    signal?: AbortSignal,
  ) => Promise<LockHandle | undefined>
}

export interface StageOptions extends StagedStoreOptions {
  readonly engine?: Partial<EngineOptions>
  readonly clock?: ManualClock
  readonly memory?: MemoryStore
  readonly ttlMs?: number
}

export const TTL_MS = 10_000

/** An engine over a directed memory store, with time that moves by hand. */
export class Stage {
  readonly clock: ManualClock
  readonly memory: MemoryStore
  readonly store: StagedStore
  readonly engine: LockEngine
  readonly events: LockEvent[] = []
  readonly #ttlMs: number

  constructor(options: StageOptions = {}) {
    this.clock = options.clock ?? new ManualClock()
    this.memory = options.memory ?? new MemoryStore({ clock: this.clock, ids: seededIds(1) })
    this.store = new StagedStore(this.memory, options)
    this.engine = new LockEngine({
      store: this.store,
      clock: this.clock,
      random: seededRandom(1),
      ...options.engine,
    })
    this.engine.onEvent((event) => this.events.push(event))
    this.#ttlMs = options.ttlMs ?? TTL_MS
  }

  static async started(options: StageOptions = {}): Promise<Stage> {
    const stage = new Stage(options)
    await stage.engine.start()
    return stage
  }

  /** A worker with a session of its own, which lives for a minute unless told otherwise. */
  async worker(name: string, sessionTtlMs = 60_000): Promise<Worker> {
    const sessionId = await this.engine.openSession(name, sessionTtlMs)
    return this.workerOf(name, sessionId)
  }

  workerOf(name: string, sessionId: string): Worker {
    const locks = this.engine.forSession(sessionId)
    return {
      name,
      sessionId,
      locks,
      take: (key, maxWaitMs = 0, signal) =>
        locks.acquire(key, name, this.#ttlMs, maxWaitMs, signal),
    }
  }

  /** Workers by name, in that order. */
  async workers<const Names extends readonly string[]>(
    ...names: Names
  ): Promise<{ readonly [At in keyof Names]: Worker }> {
    const workers = await Promise.all(names.map((name) => this.worker(name)))
    return workers as unknown as { readonly [At in keyof Names]: Worker }
  }

  /** So many workers. */
  crowd(count: number): Promise<readonly Worker[]> {
    return this.workers(...Array.from({ length: count }, (_, index) => `worker-${index}`))
  }

  /** Lets every promise chain settle, without any time passing. */
  settle(): Promise<void> {
    return this.clock.advance(0)
  }

  told(type: LockEvent['type']): LockEvent[] {
    return this.events.filter((event) => event.type === type)
  }
}

/** The handle, or the test's failure. */
export function granted(handle: LockHandle | undefined): LockHandle {
  if (handle === undefined) throw new Error('expected a grant, got none')
  return handle
}

export interface Watched<T> {
  state: 'pending' | 'resolved' | 'rejected'
  value?: T
  error?: unknown
}

/** What became of a promise so far. */
export function watch<T>(promise: Promise<T>): Watched<T> {
  const seen: Watched<T> = { state: 'pending' }
  promise.then(
    (value) => {
      seen.state = 'resolved'
      seen.value = value
    },
    (error: unknown) => {
      seen.state = 'rejected'
      seen.error = error
    },
  )
  return seen
}
