import { Counter, Gauge, Histogram, Registry } from 'prom-client'

const OUTCOMES = ['posted', 'failed', 'abandoned', 'ambiguous', 'fenced'] as const
export type ExecuteOutcome = (typeof OUTCOMES)[number]

/** The hops of one payout, for the share of its time that each takes. */
const HOPS = ['acquire', 'claim', 'submitted', 'rail', 'outcome', 'post', 'release'] as const
export type Hop = (typeof HOPS)[number]

/** Labels are closed sets; never an account, a payout or a token (NFR-09). */
export class ExecutorMetrics {
  readonly registry: Registry = new Registry()
  readonly #execute: Histogram
  readonly #hops: Counter
  readonly #sessionsLost: Counter
  #backlogAgeSeconds: () => number = () => 0

  constructor() {
    const registers = [this.registry]
    this.#execute = new Histogram({
      name: 'payout_execute_seconds',
      help: 'From the lock to the end of a payout, by how it ended',
      labelNames: ['outcome'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    })
    for (const outcome of OUTCOMES) this.#execute.zero({ outcome })
    this.#hops = new Counter({
      name: 'payout_hop_seconds_total',
      help: 'Time spent in each hop of a payout',
      labelNames: ['hop'],
      registers,
    })
    for (const hop of HOPS) this.#hops.inc({ hop }, 0)
    this.#sessionsLost = new Counter({
      name: 'lock_session_lost_total',
      help: 'Sessions that ended unasked',
      registers,
    })
    const age: Gauge = new Gauge({
      name: 'payout_backlog_age_seconds',
      help: 'Age of the oldest payout that nobody has begun',
      registers,
      collect: () => age.set(this.#backlogAgeSeconds()),
    })
  }

  set backlogAgeSeconds(read: () => number) {
    this.#backlogAgeSeconds = read
  }

  executed(outcome: ExecuteOutcome, seconds: number): void {
    this.#execute.observe({ outcome }, seconds)
  }

  hop(hop: Hop, seconds: number): void {
    this.#hops.inc({ hop }, seconds)
  }

  sessionLost(): void {
    this.#sessionsLost.inc()
  }
}
