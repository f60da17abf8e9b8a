import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'

/** Up to a minute, in microseconds, to three significant digits. */
const RANGE = { lowest: 1, highest: 60_000_000, figures: 3 } as const

/** What was counted in how much time, and how long each one took. */
export class Sample {
  readonly #microseconds: RecordableHistogram = createHistogram(RANGE)
  #seconds = 0

  get count(): number {
    return this.#microseconds.count
  }

  get perSecond(): number {
    return this.count / this.#seconds
  }

  /** One that took `us` microseconds. */
  record(us: number): void {
    this.#microseconds.record(Math.min(Math.max(Math.round(us), RANGE.lowest), RANGE.highest))
  }

  /** The window in which they were counted; windows add up. */
  lasted(seconds: number): void {
    this.#seconds += seconds
  }

  /** Milliseconds that `share` of them (0 … 1) did not exceed. */
  ms(share: number): number {
    return this.#microseconds.percentile(share * 100) / 1_000
  }
}

/** Microseconds between two readings of `process.hrtime.bigint()`. */
export function microseconds(from: bigint, to: bigint): number {
  return Number(to - from) / 1_000
}
