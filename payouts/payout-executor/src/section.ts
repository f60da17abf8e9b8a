import type { LockHandle } from '@dlock/lock-api'
import {
  type Answered,
  call,
  idempotencyKeyOf,
  type Payout,
  paymentOperations as payments,
  type RailOutcome,
  railOperations as rail,
} from '@dlock/messages'
import type { ErrorCode, ErrorEnvelope } from '@dlock/protocol'
import type { Ids } from '@dlock/system'
import type { Hop } from './executor-metrics.ts'

/** How a payout's critical section ended. */
export type SectionEnd =
  | 'posted'
  | 'failed'
  | 'abandoned'
  | 'ambiguous'
  /** A guard refused the token: this holder has been superseded. */
  | 'fenced'
  /** Nothing more to do now: another pass, with another grant, goes on from the recorded state. */
  | 'later'

/** The steps of a section, in order; between any two the process may end. */
export const STEPS = ['acquired', 'claimed', 'submitted', 'answered', 'recorded', 'posted'] as const
export type Step = (typeof STEPS)[number]

export interface SectionParts {
  readonly paymentUrl: string
  readonly railProxyUrl: string
  /** The rail's own read time-out: the proxy is waited for 2 s longer (see `http.md`). */
  readonly railReadTimeoutMs: number
  /** The longest that one call of guard 1 may take. */
  readonly stepTimeoutMs: number
  readonly ids: Ids
  readonly ownerId: string
  readonly traceparent: string
  /**
   * Called before each step with the longest it may take; throws when the lock is lost or the lease
   * does not cover it. A liveness aid: what keeps a late write out is the guard.
   */
  readonly checkStillHeld: (needMs: number) => void
  readonly timed: <T>(hop: Hop, work: () => Promise<T>) => Promise<T>
  /** A guard or the rail said no; for the log. */
  readonly onRefused: (envelope: ErrorEnvelope) => void
  /** After a step that was done; for experiments, which stop or kill the process there. */
  readonly reached: (step: Step) => Promise<void>
}

/**
 * The critical section of one payout, under one grant. It goes on from whatever state the payout is
 * in, so that recovery is not a case of its own: the recorded state and the proxy's record decide
 * what is left to do, never the time that has passed (FR-24).
 *
 * Every protected call carries the token. Any answer that is not a definite yes or no ends the
 * section; nothing here is retried that the rail could see.
 */
export class Section {
  readonly #parts: SectionParts
  readonly #lock: LockHandle
  readonly #payout: Payout

  /** @param payout as it was read after the lock was granted (FR-14) */
  constructor(parts: SectionParts, lock: LockHandle, payout: Payout) {
    this.#parts = parts
    this.#lock = lock
    this.#payout = payout
  }

  async run(): Promise<SectionEnd> {
    const { state } = this.#payout
    if (
      state !== 'PENDING' &&
      state !== 'CLAIMED' &&
      state !== 'RAIL_SUBMITTED' &&
      state !== 'RAIL_ACKED'
    ) {
      return endOf(this.#payout)
    }
    await this.#parts.reached('acquired')
    // The admission comes first whatever the state: it raises the fence before anything is read
    // that is then acted on (P-27).
    const claimed = await this.#write('claim', payments.claim, { expectedState: state })
    if (claimed.kind !== 'ok') return refusalEnd(claimed)
    await this.#parts.reached('claimed')
    return this.#continue(claimed.output)
  }

  async #continue(payout: Payout): Promise<SectionEnd> {
    switch (payout.state) {
      case 'CLAIMED':
        return this.#submit()
      case 'RAIL_SUBMITTED':
        return this.#recover(payout)
      case 'RAIL_ACKED':
        return this.#post(payout)
      case 'PENDING':
      case 'RAIL_AMBIGUOUS':
      case 'POSTED':
      case 'FAILED':
      case 'ABANDONED':
        return endOf(payout)
    }
  }

  async #submit(): Promise<SectionEnd> {
    const submissionId = this.#parts.ids.uuid()
    const marked = await this.#write('submitted', payments.submitted, { submissionId })
    if (marked.kind !== 'ok') return refusalEnd(marked)
    await this.#parts.reached('submitted')
    const { railReadTimeoutMs, railProxyUrl, traceparent, timed } = this.#parts
    const timeoutMs = railReadTimeoutMs + 2_000
    this.#parts.checkStillHeld(timeoutMs)
    const { accountId, amountMinor, currency, beneficiaryRef } = this.#payout
    const submission = { ...this.#signed(), accountId, amountMinor, currency, beneficiaryRef }
    const answered = await timed('rail', () =>
      call(railProxyUrl, rail.submit, submission, { timeoutMs, traceparent }),
    )
    await this.#parts.reached('answered')
    const { output } = answered as { readonly output?: { readonly railReference: string } }
    if (output !== undefined) {
      return this.#record(submissionId, 'ACKED', output.railReference)
    }
    return this.#recordRefusal(submissionId, answered)
  }

  /** What the proxy's answer proves. Where it proves nothing, the outcome is unknown, for good. */
  async #recordRefusal(submissionId: string, answered: Answered<unknown>): Promise<SectionEnd> {
    if (answered.kind !== 'refused') {
      // A refused connection is one to the proxy itself: it never heard of this.
      const outcome =
        answered.kind === 'no-answer' && answered.refusedConnection ? 'NOT_PRESENTED' : 'AMBIGUOUS'
      return this.#record(submissionId, outcome)
    }
    this.#parts.onRefused(answered.envelope)
    const { code } = answered.envelope
    if (code === 'FENCED_OUT') return 'fenced'
    if (code === 'DUPLICATE_SUBMISSION') return this.#recordFromProxy(submissionId)
    return this.#record(submissionId, PROVEN[code] ?? 'AMBIGUOUS')
  }

  /**
   * An earlier holder said "submitted" and was not heard of again. Its token is shut out at the
   * proxy first; what the proxy's record says after that is final (P-27).
   */
  async #recover(payout: Payout): Promise<SectionEnd> {
    const { railProxyUrl, traceparent, ownerId } = this.#parts
    this.#parts.checkStillHeld(this.#parts.stepTimeoutMs)
    const floor = this.#lock.fencingToken - 1n
    if (floor > 0n) {
      const push = { ownerId, accountId: payout.accountId, floor: floor.toString() }
      const raised = await call(railProxyUrl, rail.advance, push, {
        timeoutMs: 3_000,
        traceparent,
      })
      if (raised.kind !== 'ok') return 'later'
    }
    return this.#recordFromProxy(payout.submissionId ?? '')
  }

  async #recordFromProxy(submissionId: string): Promise<SectionEnd> {
    const { railProxyUrl, traceparent } = this.#parts
    const { payoutId } = this.#payout
    const record = await call(
      railProxyUrl,
      rail.submissions,
      { payoutId },
      {
        timeoutMs: 3_000,
        traceparent,
        retries: 2,
      },
    )
    if (record.kind !== 'ok') return 'later'
    const forwarded = record.output.items.filter(
      ({ outcome }) =>
        outcome !== 'FENCED' && outcome !== 'DUPLICATE' && outcome !== 'NOT_PRESENTED',
    )
    const [attempt] = forwarded
    if (attempt === undefined) return this.#record(submissionId, 'NOT_PRESENTED')
    if (attempt.outcome === 'REJECTED') return this.#record(submissionId, 'REJECTED')
    if (attempt.outcome === 'ACKED' && attempt.railReference !== undefined) {
      return this.#record(submissionId, 'ACKED', attempt.railReference)
    }
    return this.#record(submissionId, 'AMBIGUOUS')
  }

  async #record(
    submissionId: string,
    railOutcome: RailOutcome,
    railReference?: string,
  ): Promise<SectionEnd> {
    const recorded = await this.#write('outcome', payments.outcome, {
      submissionId,
      railOutcome,
      ...(railReference !== undefined && { railReference }),
    })
    if (recorded.kind !== 'ok') return refusalEnd(recorded)
    await this.#parts.reached('recorded')
    if (recorded.output.state === 'RAIL_ACKED') return this.#post(recorded.output)
    // Back to CLAIMED: this grant's token may be used up at the proxy, so another pass submits.
    return endOf(recorded.output)
  }

  async #post({ submissionId = '', railReference = '' }: Payout): Promise<SectionEnd> {
    const posted = await this.#write('post', payments.post, { submissionId, railReference })
    if (posted.kind !== 'ok') return refusalEnd(posted)
    await this.#parts.reached('posted')
    return endOf(posted.output)
  }

  /** A protected write at guard 1: no retry on any 409, one on 503 or a refused connection. */
  async #write<Input extends object>(
    hop: Hop,
    operation: Parameters<typeof call<Input & Signed, Payout>>[1],
    input: Input,
  ): Promise<Answered<Payout>> {
    const { paymentUrl, traceparent, checkStillHeld, timed, stepTimeoutMs } = this.#parts
    checkStillHeld(stepTimeoutMs)
    const signed: Input & Signed = { ...this.#signed(), ...input }
    const options = { timeoutMs: stepTimeoutMs, traceparent, retries: 1 }
    const answered = await timed(hop, () => call(paymentUrl, operation, signed, options))
    if (answered.kind === 'refused') this.#parts.onRefused(answered.envelope)
    return answered
  }

  #signed(): Signed {
    const { payoutId } = this.#payout
    return {
      payoutId,
      ownerId: this.#parts.ownerId,
      fencingToken: this.#lock.fencingToken.toString(),
      idempotencyKey: idempotencyKeyOf(payoutId),
    }
  }
}

/** The only refusals that say what happened at the rail. */
const PROVEN: Partial<Record<ErrorCode, RailOutcome>> = {
  RAIL_REJECTED: 'REJECTED',
  RAIL_UNAVAILABLE: 'NOT_PRESENTED',
}

interface Signed {
  readonly payoutId: string
  readonly ownerId: string
  readonly fencingToken: string
  readonly idempotencyKey: string
}

function endOf({ state }: Payout): SectionEnd {
  switch (state) {
    case 'POSTED':
      return 'posted'
    case 'FAILED':
      return 'failed'
    case 'ABANDONED':
      return 'abandoned'
    case 'RAIL_AMBIGUOUS':
      return 'ambiguous'
    case 'PENDING':
    case 'CLAIMED':
    case 'RAIL_SUBMITTED':
    case 'RAIL_ACKED':
      return 'later'
  }
}

function refusalEnd(answered: Answered<unknown>): SectionEnd {
  if (answered.kind !== 'refused') return 'later'
  if (answered.envelope.code === 'FENCED_OUT') return 'fenced'
  return answered.envelope.code === 'INSUFFICIENT_FUNDS' ? 'failed' : 'later'
}
