import { type ForwardOnce, fencedOut, type Submitted } from '@dlock/guard'
import {
  type CallContext,
  idempotencyKeyOf,
  invalid,
  lockKeyOf,
  railOperations as operations,
  type RailAcknowledgement,
  type RailSubmission,
  type Service,
} from '@dlock/messages'
import { Failure, fencedOutFailure, parseFencingToken } from '@dlock/protocol'
import { submissionOf } from './fencing-token.ts'
import type { RailClient } from './rail-client.ts'
import type { RailMetrics } from './rail-metrics.ts'

export interface RailProxyHttp {
  readonly guard: ForwardOnce<RailSubmission, string>
  readonly rail: RailClient
  readonly metrics: RailMetrics
}

/** The calls of guard 2. What decides is in `ForwardOnce`; here it is spelled, logged and counted. */
export function serveRailProxy(service: Service, { guard, rail, metrics }: RailProxyHttp): void {
  service.serve(
    operations.submit,
    async (input, context) => {
      const fencingToken = tokenOf(input.fencingToken, 'fencingToken')
      if (input.idempotencyKey !== idempotencyKeyOf(input.payoutId)) {
        throw new Failure('IDEMPOTENCY_CONFLICT', 'X-Idempotency-Key is not the one of this payout')
      }
      return answer(await guard.submit(submissionOf(input, fencingToken)), input, context, metrics)
    },
    'rail.submit',
  )
  service.serve(operations.submissions, async ({ payoutId }) => {
    const attempts = await guard.attempts(idempotencyKeyOf(payoutId))
    return {
      items: attempts.map((attempt) => ({
        attemptId: attempt.attemptId,
        payoutId,
        ownerId: attempt.ownerId,
        fencingToken: attempt.fencingToken.toString(),
        outcome: attempt.outcome,
        ...(attempt.reference !== undefined && { railReference: attempt.reference }),
        attemptedAt: attempt.attemptedAt.toISOString(),
      })),
    }
  })
  service.serve(operations.transfers, async ({ payoutId }) => {
    const items = await rail.transfers(payoutId)
    if (items === undefined) throw new Failure('RAIL_UNAVAILABLE', 'the look-up did not answer')
    return { items }
  })
  service.serve(operations.advance, async ({ accountId, floor, ownerId }, { log }) => {
    const fence = await guard
      .advance(lockKeyOf(accountId), tokenOf(floor, 'floor'))
      .catch((error: unknown) => {
        if (!(error instanceof RangeError)) throw error
        throw invalid([{ field: 'floor', message: error.message.replace(/^floor /, '') }])
      })
    log.info({ event: 'fence_advanced', ownerId, floor, fence: fence.toString() })
    return { accountId, fence: fence.toString() }
  })
}

function answer(
  submitted: Submitted<string>,
  { payoutId, accountId, ownerId, fencingToken }: RailSubmission,
  { log }: CallContext,
  metrics: RailMetrics,
): RailAcknowledgement {
  const who = { ownerId, token: fencingToken, payoutId, accountId }
  switch (submitted.kind) {
    case 'acked':
      metrics.submitted('acked')
      log.info({ event: 'rail_submitted', ...who, outcome: 'ACKED' })
      return { attemptId: submitted.attemptId, railReference: submitted.reply }
    case 'rejected':
      metrics.submitted('rejected')
      log.info({ event: 'rail_submitted', ...who, outcome: 'REJECTED' })
      throw new Failure('RAIL_REJECTED', 'the rail declined it')
    case 'unknown':
      metrics.submitted('timeout')
      log.error({ event: 'rail_ambiguous', ...who, why: submitted.why })
      throw new Failure('RAIL_AMBIGUOUS', `presented, outcome unknown: ${submitted.why}`)
    case 'not-presented':
      log.warn({ event: 'rail_unavailable', ...who, why: submitted.why })
      throw new Failure('RAIL_UNAVAILABLE', `nothing was presented: ${submitted.why}`)
    case 'duplicate': {
      metrics.duplicate()
      const { attemptId, outcome } = submitted.earlier
      log.error({ event: 'duplicate_rail_submission_attempted', ...who, earlier: attemptId })
      throw new Failure('DUPLICATE_SUBMISSION', 'this payout has an attempt already', {
        details: { attemptId, outcome, payoutId },
      })
    }
    case 'fenced-out': {
      metrics.submitted('fenced')
      const resource = { type: 'rail', id: accountId, ownerId }
      const failure = fencedOutFailure(fencedOut(submitted.refused), resource)
      log.error({ event: 'fenced_out', key: submitted.refused.key, ...failure.details })
      throw failure
    }
  }
}

function tokenOf(text: string, field: string): bigint {
  const token = parseFencingToken(text)
  if (token === undefined) throw invalid([{ field, message: 'is no token' }])
  return token
}
