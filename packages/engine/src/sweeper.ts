import type { LockStore } from '@dlock/lock-api'
import type { Clock, Random, Timer } from '@dlock/system'
import type { Bookkeeping } from './bookkeeping.ts'
import { jitteredMs, nanosOf } from './durations.ts'
import type { Grants } from './grants.ts'
import type { Sessions } from './sessions.ts'
import type { TokenGuard } from './token-guard.ts'

/**
 * How long after its time a lease is looked at: by then it has ended at the store too, which began
 * to count when the request arrived, unless somebody prolonged it elsewhere.
 */
const GRACE_MS = 500

export interface SweeperOptions {
  readonly store: LockStore
  readonly clock: Clock
  readonly random: Random
  readonly grants: Grants
  readonly bookkeeping: Bookkeeping
  readonly sessions: Sessions
  readonly guard: TokenGuard
  readonly everyMs: number
  readonly maxLatenessMs: number
}

/**
 * Clears away what has expired, and notices what nobody tells. A liveness aid only: an expired
 * grant counts for nothing before any sweep, and every process sweeps, at times of its own.
 */
export class Sweeper {
  readonly #options: SweeperOptions
  #timer: Timer | undefined
  #sweeping: Promise<unknown> | undefined
  #stopped = false

  constructor(options: SweeperOptions) {
    this.#options = options
  }

  start(): void {
    if (this.#stopped) return
    const { clock, random, everyMs } = this.#options
    this.#timer = clock.setTimer(jitteredMs(random, everyMs), () => {
      this.#sweeping = this.#sweep().then(() => this.start())
    })
  }

  /** Settles when the sweep that is under way, if any, has ended. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#timer?.cancel()
    await this.#sweeping
  }

  /** A part that fails now is done by the next sweep, and must not keep the others from theirs. */
  async #sweep(): Promise<void> {
    const { store, clock, sessions, guard } = this.#options
    await Promise.allSettled([
      store.reapExpired(clock.now()),
      this.#confirmEnds(),
      sessions.sweep(),
      guard.stopped === undefined ? guard.checkCounter() : undefined,
    ])
  }

  /** A lease that ran out here may have been prolonged elsewhere: the store knows. */
  async #confirmEnds(): Promise<void> {
    const { store, clock, grants, bookkeeping, maxLatenessMs } = this.#options
    const nowNanos = clock.monotonicNanos()
    for (const grant of grants.endedBy(nowNanos - nanosOf(maxLatenessMs + GRACE_MS))) {
      const info = await store.read(grant.key)
      if (info?.fencingToken === grant.fencingToken) {
        grant.endsAtNanos = nowNanos + nanosOf(grant.ttlMs)
      } else bookkeeping.expired(grant)
    }
  }
}
