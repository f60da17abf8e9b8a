import type { Payout, PayoutState } from '@dlock/messages'

/** BIGINT as text: a driver's number is exact only to 2^53 (P-25). */
export const PAYOUT_COLUMNS = `p.payout_id, p.sequence::text, p.account_id, p.amount_minor::text,
  p.currency, p.beneficiary_ref, p.state, p.claimed_by, p.claim_token::text, p.submission_id,
  p.rail_reference, p.reason, p.created_at, p.updated_at`

export interface PayoutRow {
  readonly payout_id: string
  readonly sequence: string
  readonly account_id: string
  readonly amount_minor: string
  readonly currency: string
  readonly beneficiary_ref: string
  readonly state: PayoutState
  readonly claimed_by: string | null
  readonly claim_token: string | null
  readonly submission_id: string | null
  readonly rail_reference: string | null
  readonly reason: string | null
  readonly created_at: Date
  readonly updated_at: Date
}

export function toPayout(row: PayoutRow): Payout {
  return {
    payoutId: row.payout_id,
    accountId: row.account_id,
    amountMinor: Number(row.amount_minor),
    currency: row.currency,
    beneficiaryRef: row.beneficiary_ref,
    state: row.state,
    ...(row.claimed_by !== null && { claimedBy: row.claimed_by }),
    ...(row.claim_token !== null && { claimToken: row.claim_token }),
    ...(row.submission_id !== null && { submissionId: row.submission_id }),
    ...(row.rail_reference !== null && { railReference: row.rail_reference }),
    ...(row.reason !== null && { reason: row.reason }),
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  }
}
