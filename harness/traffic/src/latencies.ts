import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import type { Clock } from '@dlock/system'

/** Up to five minutes, in microseconds, to three significant digits. */
const RANGE = { lowest: 1, highest: 300_000_000, figures: 3 }

/** What is timed. */
export type Timed = 'acquire' | 'renew' | 'release'

/** How long calls took, in an HDR histogram each. Those that reject are not counted. */
export class Latencies {
  readonly #clock: Clock
  readonly #histograms = new Map<Timed, RecordableHistogram>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async time<T>(what: Timed, call: () => Promise<T>): Promise<T> {
    const startNanos = this.#clock.monotonicNanos()
    const answer = await call()
    const micros = Math.round(Number(this.#clock.monotonicNanos() - startNanos) / 1_000)
    this.#histogram(what).record(Math.min(Math.max(micros, RANGE.lowest), RANGE.highest))
    return answer
  }

  count(what: Timed): number {
    return this.#histograms.get(what)?.count ?? 0
  }

  /** Milliseconds that `share` (0 … 1) of the calls did not exceed; 0 when there were none. */
  ms(what: Timed, share: number): number {
    return (this.#histograms.get(what)?.percentile(share * 100) ?? 0) / 1_000
  }

  #histogram(what: Timed): RecordableHistogram {
    const histogram = this.#histograms.get(what) ?? createHistogram(RANGE)
    this.#histograms.set(what, histogram)
    return histogram
  }
}
