import type { AbortSignalLike, LockHandle } from '@dlock/lock-api'
import type { Clock, Timer } from '@dlock/system'
import type { AbortFanOut } from './abort-fan-out.ts'
import { msBetween } from './durations.ts'
import type { LockRequest } from './fencing-token.ts'
import type { Sessions } from './sessions.ts'

/** Why a call stops waiting without a grant. */
export type Ending = 'timed-out' | { readonly error: unknown }

export interface WaiterOptions {
  readonly request: LockRequest
  readonly sinceNanos: bigint
  readonly deadlineNanos: bigint
  readonly signal: AbortSignalLike | undefined
}

/** What a waiter is woken by, other than its key. */
export interface Alarms {
  readonly clock: Clock
  readonly aborts: AbortFanOut
  readonly sessions: Sessions
}

/**
 * One call of `acquire` in the queue of its key.
 *
 * States: *asking* for the first time (nothing is armed: most calls are granted right then) →
 * *waiting* (armed: its deadline, its signal and its session's end can end it) → settled, once.
 * While `claimed`, the store is being asked on its behalf; it cannot leave before the answer, so
 * that no grant is left behind, and `ending` remembers that it wants to.
 */
export class Waiter {
  readonly request: LockRequest
  readonly sinceNanos: bigint
  readonly deadlineNanos: bigint
  readonly outcome: Promise<LockHandle | undefined>
  claimed = false
  /** Its last attempt ended without a decision: a grant of its session may be recorded. */
  unsettled = false
  /** It is leaving, and the store is asked for the last time. */
  isParting = false
  ending: Ending | undefined
  readonly #signal: AbortSignalLike | undefined
  #resolve!: (outcome: LockHandle | undefined) => void
  #reject!: (error: unknown) => void
  #alarms: Alarms | undefined
  #timer: Timer | undefined
  #offAbort: (() => void) | undefined
  #onEnding: ((ending: Ending) => void) | undefined

  constructor(options: WaiterOptions) {
    this.request = options.request
    this.sinceNanos = options.sinceNanos
    this.deadlineNanos = options.deadlineNanos
    this.#signal = options.signal
    this.outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  get armed(): boolean {
    return this.#alarms !== undefined
  }

  /** Starts to wait: from now on `onEnding` is called, once, when there is a reason to stop. */
  arm(alarms: Alarms, onEnding: (ending: Ending) => void): void {
    this.#alarms = alarms
    this.#onEnding = onEnding
    const { clock } = alarms
    const leftMs = msBetween(clock.monotonicNanos(), this.deadlineNanos)
    this.#timer = clock.setTimer(Math.max(leftMs, 0), () => this.end('timed-out'), {
      keepAlive: true,
    })
    if (this.#signal !== undefined) {
      const signal = this.#signal
      this.#offAbort = alarms.aborts.on(signal, () => this.end({ error: signal.reason }))
    }
    alarms.sessions.watch(this)
  }

  /** Says that this waiter should stop; the first reason stands. */
  end(ending: Ending): void {
    if (this.ending !== undefined) return
    this.ending = ending
    this.#disarm()
    this.#onEnding?.(ending)
  }

  /** Looks once at what nobody had armed an alarm for while the first attempt was on its way. */
  look(nowNanos: bigint): void {
    if (this.ending !== undefined) return
    if (this.#signal?.aborted === true) this.ending = { error: this.#signal.reason }
    else if (nowNanos >= this.deadlineNanos) this.ending = 'timed-out'
  }

  resolve(outcome: LockHandle | undefined): void {
    this.#disarm()
    this.#resolve(outcome)
  }

  reject(error: unknown): void {
    this.#disarm()
    this.#reject(error)
  }

  #disarm(): void {
    this.#timer?.cancel()
    this.#offAbort?.()
    this.#alarms?.sessions.unwatch(this)
    this.#offAbort = undefined
  }
}
