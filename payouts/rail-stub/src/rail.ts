import type { Clock, Ids, Random } from '@dlock/system'

/** Settable at run time; every rate is a probability from 0 to 1. */
export interface RailFaults {
  readonly latencyMs: number
  /** The transfer is declined: definitively, and nothing happens. */
  readonly declineRate: number
  /** The rail fails without saying whether it did anything; it did not. */
  readonly failureRate: number
  /** The transfer is made and the connection dropped: the caller cannot know. */
  readonly lostReplyRate: number
  /** The acknowledgement is sent twice. */
  readonly duplicateAckRate: number
  /** This part of the requests takes `slowMs` instead of `latencyMs`. */
  readonly slowRate: number
  readonly slowMs: number
  /** How long a transfer stays invisible to the look-up. */
  readonly lookupLagMs: number
}

export interface TransferRequest {
  readonly clientRef: string
  readonly amountMinor: number
  readonly currency: string
}

export interface Transfer extends TransferRequest {
  readonly railReference: string
}

/** What the rail received, in order: tests ask it, not the proxy, whether it was called. */
export interface LoggedRequest extends TransferRequest {
  readonly number: number
  readonly receivedAt: string
}

export type RailReply =
  | { readonly kind: 'acked'; readonly transfer: Transfer; readonly twice: boolean }
  | { readonly kind: 'declined' }
  | { readonly kind: 'failed' }
  | { readonly kind: 'lost' }

/**
 * A payment rail without key, token or memory (FR-21): every request is a fresh transfer. It knows
 * what it paid, and tells it later, in the look-up.
 */
export class Rail {
  readonly #log: LoggedRequest[] = []
  readonly #transfers: { readonly transfer: Transfer; readonly visibleAt: bigint }[] = []
  readonly #clock: Clock
  readonly #random: Random
  readonly #ids: Ids
  faults: RailFaults

  constructor(faults: RailFaults, seams: { clock: Clock; random: Random; ids: Ids }) {
    this.faults = faults
    this.#clock = seams.clock
    this.#random = seams.random
    this.#ids = seams.ids
  }

  /** Receives a request, and at once logs it: from here on the money may leave. */
  async submit(request: TransferRequest): Promise<RailReply> {
    const { faults } = this
    const receivedAt = this.#clock.now().toISOString()
    this.#log.push({ ...request, number: this.#log.length + 1, receivedAt })
    const fate = this.#random.next()
    const isSlow = this.#random.next() < faults.slowRate
    await this.#delay(isSlow ? faults.slowMs : faults.latencyMs)
    if (fate < faults.declineRate) return { kind: 'declined' }
    if (fate < faults.declineRate + faults.failureRate) return { kind: 'failed' }
    const transfer = { ...request, railReference: `R-${this.#ids.uuid()}` }
    const visibleAt = this.#clock.monotonicNanos() + BigInt(faults.lookupLagMs) * 1_000_000n
    this.#transfers.push({ transfer, visibleAt })
    if (this.#random.next() < faults.lostReplyRate) return { kind: 'lost' }
    return { kind: 'acked', transfer, twice: this.#random.next() < faults.duplicateAckRate }
  }

  /** The eventually consistent look-up. */
  transfers(clientRef: string): readonly Transfer[] {
    const now = this.#clock.monotonicNanos()
    return this.#transfers
      .filter(({ transfer, visibleAt }) => transfer.clientRef === clientRef && visibleAt <= now)
      .map(({ transfer }) => transfer)
  }

  get requests(): readonly LoggedRequest[] {
    return this.#log
  }

  #delay(ms: number): Promise<void> {
    if (ms === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#clock.setTimer(ms, resolve, { keepAlive: true })
    })
  }
}
