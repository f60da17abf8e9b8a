import type { Submission } from '@dlock/guard'
import { lockKeyOf, type RailSubmission } from '@dlock/messages'

/**
 * Life of a fencing token, step 7 of 8: is used (rail-proxy).
 *
 * The rail can compare nothing, so the token is used up here: `ForwardOnce` of `@dlock/guard`
 * admits a submission only when its token is above the account's durable high-water mark
 * (`fence < token`, one submission per grant) and raises the mark in the transaction that records
 * the attempt. The mark lives in `raildb`, never in memory and never in `paydb`: two guards that
 * share a store are one guard (decision 9).
 */
export function submissionOf(
  input: RailSubmission,
  fencingToken: bigint,
): Submission<RailSubmission> {
  const { accountId, idempotencyKey, ownerId } = input
  return { lockKey: lockKeyOf(accountId), fencingToken, idempotencyKey, ownerId, request: input }
}
