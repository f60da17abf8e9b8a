import type { EngineMeter, LockEngine, LockEvent } from '@dlock/engine'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'

/** Seconds, from half a millisecond to the longest wait. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

const outcomes = {
  acquire: ['granted', 'contended', 'error'],
  renew: ['renewed', 'lost', 'error'],
  release: ['released', 'gone', 'error'],
} as const

/**
 * The lock service's metrics, in a registry of their own. Hand it to the engine as its meter and to
 * the server: `new LockEngine({ store, meter: metrics })`.
 *
 * Labels are closed sets, the backend and the outcome; never a key, an owner, an id or a token
 * (NFR-09). Every series is there from the start, at 0.
 */
export class LockMetrics implements EngineMeter {
  readonly #registry = new Registry()
  readonly #backend: string
  readonly #acquire: Histogram
  readonly #renew: Histogram
  readonly #release: Histogram
  readonly #handoff: Histogram
  readonly #expired: Counter
  readonly #revoked: Counter
  readonly #regressions: Counter
  #gauges: LockEngine['gauges'] = () => ({ held: 0, waiters: 0, sessions: 0 })

  /** @param backend the store's `backendId()` */
  constructor(backend: string) {
    this.#backend = backend
    this.#acquire = this.#timer(
      'lock_acquire_seconds',
      'From acquire to its answer, waits included',
    )
    this.#renew = this.#timer('lock_renew_seconds', 'From renew to its answer')
    this.#release = this.#timer('lock_release_seconds', 'From release to its answer')
    for (const outcome of outcomes.acquire) this.#acquire.zero({ backend, outcome })
    for (const outcome of outcomes.renew) this.#renew.zero({ backend, outcome })
    for (const outcome of outcomes.release) this.#release.zero({ backend, outcome })
    this.#handoff = this.#timer('lock_handoff_seconds', "From release to the next waiter's grant", [
      'backend',
    ])
    this.#handoff.zero({ backend })
    this.#expired = this.#counter('lock_lease_expired_total', 'Leases that ended unreleased')
    this.#revoked = this.#counter('lock_revoked_total', 'Grants that an operator took away')
    this.#regressions = this.#counter(
      'lock_token_regression_total',
      'Tokens from the store that were not above an earlier one; healthy at 0',
    )
    this.#gauge('lock_held_current', 'Grants of this process that live', 'held')
    this.#gauge('lock_waiters_current', 'Calls that wait in this process', 'waiters')
    this.#gauge('lock_sessions_current', 'Sessions that this process serves', 'sessions')
  }

  /** Counts what `engine` tells from now on, and shows its gauges. */
  watch(engine: LockEngine): () => void {
    this.#gauges = () => engine.gauges()
    return engine.onEvent((event) => this.#count(event))
  }

  /** The exposition's media type. */
  get contentType(): string {
    return this.#registry.contentType
  }

  /** Everything, in Prometheus's text format. */
  expose(): Promise<string> {
    return this.#registry.metrics()
  }

  acquired(outcome: (typeof outcomes.acquire)[number], seconds: number): void {
    this.#acquire.observe({ backend: this.#backend, outcome }, seconds)
  }

  renewed(outcome: (typeof outcomes.renew)[number], seconds: number): void {
    this.#renew.observe({ backend: this.#backend, outcome }, seconds)
  }

  released(outcome: (typeof outcomes.release)[number], seconds: number): void {
    this.#release.observe({ backend: this.#backend, outcome }, seconds)
  }

  handedOff(seconds: number): void {
    this.#handoff.observe({ backend: this.#backend }, seconds)
  }

  #count({ type }: LockEvent): void {
    const backend = this.#backend
    if (type === 'lease_expired') this.#expired.inc({ backend })
    else if (type === 'lock_revoked') this.#revoked.inc({ backend })
    else if (type === 'token_regression') this.#regressions.inc({ backend })
  }

  #timer(name: string, help: string, labelNames = ['backend', 'outcome']): Histogram {
    return new Histogram({ name, help, labelNames, buckets: BUCKETS, registers: [this.#registry] })
  }

  #counter(name: string, help: string): Counter {
    const counter = new Counter({
      name,
      help,
      labelNames: ['backend'],
      registers: [this.#registry],
    })
    counter.inc({ backend: this.#backend }, 0)
    return counter
  }

  #gauge(name: string, help: string, of: 'held' | 'waiters' | 'sessions'): void {
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames: ['backend'],
      registers: [this.#registry],
      collect: () => gauge.set({ backend: this.#backend }, this.#gauges()[of]),
    })
  }
}
