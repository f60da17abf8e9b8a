import type { Clock, Timer } from '@dlock/system'
import { type LeaseClock, toMs } from './deadline.ts'

/**
 * One timer for the earliest of many instants, so that a thousand locks do not mean a thousand
 * timers. It is only ever moved forward: when the instant it was set for turns out to be no longer
 * the earliest, it rings early, and whoever is woken looks around and sets it anew.
 *
 * It never keeps the process alive.
 */
export class Alarm {
  readonly #clock: Clock
  readonly #leaseClock: LeaseClock
  readonly #wake: () => void
  #ringsAt: bigint | undefined
  #timer: Timer | undefined

  constructor(clock: Clock, leaseClock: LeaseClock, wake: () => void) {
    this.#clock = clock
    this.#leaseClock = leaseClock
    this.#wake = wake
  }

  /** Rings at `instant` of the lease clock, or earlier if it was to ring earlier. */
  ringBy(instant: bigint): void {
    if (this.#ringsAt !== undefined && this.#ringsAt <= instant) return
    this.#timer?.cancel()
    this.#ringsAt = instant
    const delayMs = Math.max(toMs(instant - this.#leaseClock.instant()), 0)
    this.#timer = this.#clock.setTimer(delayMs, () => {
      this.#ringsAt = undefined
      this.#wake()
    })
  }

  /** Does not ring any more, until it is set again. Idempotent. */
  stop(): void {
    this.#timer?.cancel()
    this.#ringsAt = undefined
  }
}
