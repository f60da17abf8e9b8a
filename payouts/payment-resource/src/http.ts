import { fencedOut } from '@dlock/guard'
import {
  type CallContext,
  type Fenced,
  idempotencyKeyOf,
  invalid,
  paymentOperations as operations,
  type Payout,
  type Service,
} from '@dlock/messages'
import { Failure, fencedOutFailure, parseFencingToken } from '@dlock/protocol'
import type pg from 'pg'
import {
  advanceAccountFence,
  createAccount,
  createPayout,
  createPayouts,
  getAccount,
  getPayout,
  listPayouts,
} from './accounts.ts'
import { decide } from './decisions.ts'
import {
  claim,
  type Guarded,
  markSubmitted,
  post,
  recordOutcome,
  WITHOUT_FUNDS,
  type Written,
} from './holder-writes.ts'
import type { PaymentMetrics } from './payment-metrics.ts'
import { readPayoutFile } from './payout-file.ts'

export interface PaymentHttp {
  readonly guarded: Guarded
  readonly metrics: PaymentMetrics
}

/** The calls of guard 1, from the table in `@dlock/messages`. */
export function servePayments(service: Service, { guarded, metrics }: PaymentHttp): void {
  const { pool } = guarded
  service.serve(operations.createAccount, (input) => createAccount(pool, input))
  service.serve(operations.getAccount, ({ accountId }) => getAccount(pool, accountId))
  service.serve(operations.createPayout, (input) => createPayout(pool, input))
  service.serve(operations.listPayouts, (input) => listPayouts(pool, input))
  service.serve(operations.getPayout, ({ payoutId }) => getPayout(pool, payoutId))
  serveHolderWrites(service, { guarded, metrics })
  serveOperator(service, pool)
  serveImport(service, pool)
}

function serveHolderWrites(service: Service, { guarded, metrics }: PaymentHttp): void {
  const answer = answerer(metrics)
  service.serve(
    operations.claim,
    async (input, context) => {
      checkIdempotencyKey(input)
      const payout = answer(await claim(guarded, input), input, context, 'account')
      if (payout.state === 'FAILED') {
        // By this claim, made before; or later on, under the same grant: then it is no claim's matter.
        if (payout.reason !== WITHOUT_FUNDS) {
          const details = { payoutId: payout.payoutId, state: payout.state }
          throw new Failure('PAYOUT_NOT_CLAIMABLE', 'the payout is FAILED', { details })
        }
        throw new Failure('INSUFFICIENT_FUNDS', 'the account does not have the money', {
          details: { payoutId: payout.payoutId, state: payout.state },
        })
      }
      note(context, 'payout_claimed', input, payout)
      return payout
    },
    'payment.claim',
  )
  service.serve(operations.submitted, async (input, context) => {
    checkIdempotencyKey(input)
    return answer(await markSubmitted(guarded, input), input, context, 'account')
  })
  service.serve(operations.outcome, async (input, context) => {
    checkIdempotencyKey(input)
    if ((input.railOutcome === 'ACKED') !== (input.railReference !== undefined)) {
      throw invalid([{ field: 'railReference', message: 'goes with the outcome ACKED' }])
    }
    const payout = answer(await recordOutcome(guarded, input), input, context, 'account')
    if (payout.state === 'RAIL_AMBIGUOUS') note(context, 'rail_ambiguous', input, payout)
    return payout
  })
  service.serve(
    operations.post,
    async (input, context) => {
      checkIdempotencyKey(input)
      const payout = answer(await post(guarded, input), input, context, 'ledger')
      note(context, 'payout_posted', input, payout)
      return payout
    },
    'ledger.post',
  )
}

function serveOperator(service: Service, pool: pg.Pool): void {
  const decideOr409 = async (decision: Parameters<typeof decide>[1]): Promise<Payout> => {
    const payout = await decide(pool, decision)
    if (payout !== undefined) return payout
    const { state } = await getPayout(pool, decision.payoutId)
    throw new Failure('PAYOUT_NOT_CLAIMABLE', `the payout is ${state}`, { details: { state } })
  }
  service.serve(operations.cancel, ({ payoutId, ownerId, reason }) =>
    decideOr409({
      payoutId,
      reason,
      actor: ownerId,
      from: 'PENDING',
      to: 'ABANDONED',
      event: 'cancel',
    }),
  )
  service.serve(operations.abandon, ({ payoutId, ownerId, reason }) =>
    decideOr409({
      payoutId,
      reason,
      actor: ownerId,
      from: 'RAIL_AMBIGUOUS',
      to: 'ABANDONED',
      event: 'abandon',
    }),
  )
  service.serve(operations.advance, async ({ accountId, floor, ownerId }, { log }) => {
    const parsed = parseFencingToken(floor)
    if (parsed === undefined) throw invalid([{ field: 'floor', message: 'is no token' }])
    const fence = await advanceAccountFence(pool, accountId, parsed).catch(namingFloor)
    log.warn({ event: 'fence_advanced', ownerId, floor, fence: fence.toString() })
    return { accountId, fence: fence.toString() }
  })
}

function namingFloor(error: unknown): never {
  if (!(error instanceof RangeError)) throw error
  throw invalid([{ field: 'floor', message: error.message.replace(/^floor /, '') }])
}

function serveImport(service: Service, pool: pg.Pool): void {
  const { app } = service
  app.addContentTypeParser(
    'text/csv',
    { parseAs: 'string', bodyLimit: MAX_FILE_BYTES },
    (_, body, done) => done(null, body),
  )
  app.post('/v1/payouts/import', { bodyLimit: MAX_FILE_BYTES }, async (request) => {
    const ownerId = request.headers['x-owner-id']
    if (typeof ownerId !== 'string' || ownerId.length > 64 || ownerId.trim() === '') {
      throw invalid([{ field: 'X-Owner-Id', message: 'is required' }])
    }
    if (typeof request.body !== 'string') {
      throw new Failure('UNSUPPORTED_MEDIA_TYPE', 'the body must be text/csv')
    }
    const payouts = readPayoutFile(request.body, ownerId)
    return { accepted: (await createPayouts(pool, payouts)).length }
  })
}

const MAX_FILE_BYTES = 8 * 1_048_576

function checkIdempotencyKey(input: Fenced & { readonly payoutId: string }): void {
  if (parseFencingToken(input.fencingToken) === undefined) {
    throw invalid([{ field: 'fencingToken', message: 'is larger than any token' }])
  }
  if (input.idempotencyKey === idempotencyKeyOf(input.payoutId)) return
  throw new Failure('IDEMPOTENCY_CONFLICT', 'X-Idempotency-Key is not the one of this payout')
}

function answerer(metrics: PaymentMetrics) {
  return (
    written: Written,
    input: Fenced & { readonly payoutId: string },
    { log }: CallContext,
    resource: 'account' | 'ledger',
  ): Payout => {
    switch (written.kind) {
      case 'done':
        return written.payout
      case 'fenced-out': {
        metrics.fencedOut(resource)
        const failure = fencedOutFailure(fencedOut(written.refused), {
          type: resource,
          id: written.accountId,
          ownerId: input.ownerId,
        })
        log.error({ event: 'fenced_out', key: written.refused.key, ...failure.details })
        throw failure
      }
      case 'not-claimable': {
        metrics.illegalTransition()
        const { state } = written.payout
        log.warn({ event: 'illegal_transition', ownerId: input.ownerId, state })
        throw new Failure('PAYOUT_NOT_CLAIMABLE', `the payout cannot be moved: ${written.why}`, {
          details: { payoutId: input.payoutId, state },
        })
      }
      case 'not-found':
        throw new Failure('NOT_FOUND', `there is no payout ${input.payoutId}`)
    }
  }
}

function note({ log }: CallContext, event: string, input: Fenced, payout: Payout): void {
  const level = event === 'rail_ambiguous' ? 'error' : 'info'
  const { payoutId, accountId } = payout
  log[level]({ event, ownerId: input.ownerId, token: input.fencingToken, payoutId, accountId })
}
