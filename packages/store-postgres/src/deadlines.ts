import type { Clock, Timer } from '@dlock/system'

interface Watch {
  readonly untilNanos: bigint
  readonly onPast: () => void
}

/**
 * Many deadlines, of which nearly all are met, on one timer: it stays set when the call it was set
 * for is answered, and finds out then which is the next.
 */
export class Deadlines {
  readonly #clock: Clock
  readonly #watches = new Set<Watch>()
  #alarm: { readonly atNanos: bigint; readonly timer: Timer } | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Calls `onPast` once when the deadline is past, unless what this returns was called before. */
  watch(untilNanos: bigint, onPast: () => void): () => void {
    const watch = { untilNanos, onPast }
    this.#watches.add(watch)
    if (this.#alarm === undefined || untilNanos < this.#alarm.atNanos) this.#setAlarm(untilNanos)
    return () => this.#watches.delete(watch)
  }

  #setAlarm(atNanos: bigint): void {
    this.#alarm?.timer.cancel()
    const leftMs = Number(atNanos - this.#clock.monotonicNanos()) / 1_000_000
    this.#alarm = { atNanos, timer: this.#clock.setTimer(leftMs, () => this.#look()) }
  }

  #look(): void {
    this.#alarm = undefined
    const now = this.#clock.monotonicNanos()
    let next: bigint | undefined
    for (const watch of this.#watches) {
      if (watch.untilNanos <= now) {
        this.#watches.delete(watch)
        watch.onPast()
      } else if (next === undefined || watch.untilNanos < next) {
        next = watch.untilNanos
      }
    }
    if (next !== undefined) this.#setAlarm(next)
  }
}
