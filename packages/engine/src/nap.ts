import type { Clock } from '@dlock/system'
import { nanosOf } from './durations.ts'

/** The sleep of one loop, which others may cut short. One sleeper at a time. */
export class Nap {
  readonly #clock: Clock
  #end: ((woken: boolean) => void) | undefined
  #endsNanos = 0n

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** @returns true when it was woken before `ms` had passed */
  sleep(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      this.#endsNanos = this.#clock.monotonicNanos() + nanosOf(ms)
      // Never keeps the process alive: those for whom the loop sleeps do.
      const timer = this.#clock.setTimer(ms, () => this.#end?.(false))
      this.#end = (woken) => {
        this.#end = undefined
        timer.cancel()
        resolve(woken)
      }
    })
  }

  wake(): void {
    this.#end?.(true)
  }

  /** Wakes the sleeper if it would sleep for more than `ms` from now. */
  wakeUnlessWithin(ms: number): void {
    if (this.#clock.monotonicNanos() + nanosOf(ms) < this.#endsNanos) this.wake()
  }
}
