import { systemClock } from '@dlock/system'
import { linesOf, type Tally } from './journal.ts'
import type { Outcome } from './simulate.ts'

/** Many runs: how many failed, how quick they were, and what all happened in them. */
export class Sweep {
  readonly #tally: Tally = new Map()
  readonly #sinceNanos = systemClock.monotonicNanos()
  #runs = 0
  #failed = 0
  #steps = 0

  add({ violation, steps, tally }: Outcome): void {
    this.#runs += 1
    this.#steps += steps
    if (violation !== undefined) this.#failed += 1
    for (const [what, times] of tally) this.#tally.set(what, (this.#tally.get(what) ?? 0) + times)
  }

  report(): string {
    const seconds = Number(systemClock.monotonicNanos() - this.#sinceNanos) / 1_000_000_000
    const perSecond = (count: number): string =>
      (count / seconds).toFixed(count / seconds < 10 ? 1 : 0)
    return [
      `${this.#failed} of ${this.#runs} runs failed; ${seconds.toFixed(1)} s, ` +
        `${perSecond(this.#runs)} runs and ${perSecond(this.#steps)} steps per second`,
      ...linesOf(this.#tally),
    ].join('\n')
  }
}
