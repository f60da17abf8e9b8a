import { Counter, Gauge, Registry } from 'prom-client'

const OUTCOMES = ['acked', 'rejected', 'timeout', 'fenced'] as const

/** Labels are closed sets; never an account, a payout or a token (NFR-09). */
export class RailMetrics {
  readonly registry: Registry = new Registry()
  readonly #submissions: Counter
  readonly #fencedOut: Counter
  readonly #duplicates: Counter

  constructor(fencing: boolean) {
    const registers = [this.registry]
    this.#submissions = new Counter({
      name: 'rail_submission_total',
      help: 'Submissions by what became of them',
      labelNames: ['outcome'],
      registers,
    })
    for (const outcome of OUTCOMES) this.#submissions.inc({ outcome }, 0)
    this.#fencedOut = new Counter({
      name: 'lock_fenced_out_total',
      help: 'Writes refused for their token; healthy at exactly zero',
      labelNames: ['resource'],
      registers,
    })
    this.#fencedOut.inc({ resource: 'rail' }, 0)
    this.#duplicates = new Counter({
      name: 'rail_duplicate_attempted_total',
      help: 'Second submissions of a payout, refused; healthy at exactly zero',
      registers,
    })
    const disabled = new Gauge({
      name: 'guard_fencing_disabled',
      help: '1 while the guard is switched off, for the experiment only',
      labelNames: ['resource'],
      registers,
    })
    disabled.set({ resource: 'rail' }, fencing ? 0 : 1)
  }

  submitted(outcome: (typeof OUTCOMES)[number]): void {
    this.#submissions.inc({ outcome })
    if (outcome === 'fenced') this.#fencedOut.inc({ resource: 'rail' })
  }

  duplicate(): void {
    this.#duplicates.inc()
  }
}
