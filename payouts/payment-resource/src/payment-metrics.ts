import { Counter, Gauge, Registry } from 'prom-client'

/** Labels are closed sets; never an account, a payout or a token (NFR-09). */
export class PaymentMetrics {
  readonly registry: Registry = new Registry()
  readonly #fencedOut: Counter
  readonly #illegal: Counter
  readonly #discrepancies: Counter

  constructor(fencing: boolean) {
    const registers = [this.registry]
    this.#fencedOut = new Counter({
      name: 'lock_fenced_out_total',
      help: 'Writes refused for their token; healthy at exactly zero',
      labelNames: ['resource'],
      registers,
    })
    for (const resource of RESOURCES) this.#fencedOut.inc({ resource }, 0)
    this.#illegal = new Counter({
      name: 'payout_illegal_transition_total',
      help: 'Writes refused because the payout was in another state',
      registers,
    })
    this.#discrepancies = new Counter({
      name: 'payout_discrepancies_total',
      help: 'What reconciliations found; healthy at exactly zero',
      registers,
    })
    const disabled = new Gauge({
      name: 'guard_fencing_disabled',
      help: '1 while the guard is switched off, for the experiment only',
      labelNames: ['resource'],
      registers,
    })
    for (const resource of RESOURCES) disabled.set({ resource }, fencing ? 0 : 1)
  }

  fencedOut(resource: (typeof RESOURCES)[number]): void {
    this.#fencedOut.inc({ resource })
  }

  illegalTransition(): void {
    this.#illegal.inc()
  }

  discrepancies(count: number): void {
    this.#discrepancies.inc(count)
  }
}

const RESOURCES = ['account', 'ledger'] as const
