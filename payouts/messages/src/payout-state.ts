/**
 * The life of a payout, once (FR-22). Everything that is not in this table is rejected, logged and
 * counted. POSTED, FAILED and ABANDONED are final (INV-08).
 */
export type PayoutState =
  | 'PENDING'
  | 'CLAIMED'
  | 'RAIL_SUBMITTED'
  | 'RAIL_ACKED'
  | 'RAIL_AMBIGUOUS'
  | 'POSTED'
  | 'FAILED'
  | 'ABANDONED'

export const PAYOUT_STATES: readonly PayoutState[] = [
  'PENDING',
  'CLAIMED',
  'RAIL_SUBMITTED',
  'RAIL_ACKED',
  'RAIL_AMBIGUOUS',
  'POSTED',
  'FAILED',
  'ABANDONED',
]

export const FINAL_STATES: readonly PayoutState[] = ['POSTED', 'FAILED', 'ABANDONED']

/** Money that may leave, or has left, and is not in the ledger yet: kept aside on the account. */
export const IN_FLIGHT_STATES: readonly PayoutState[] = [
  'CLAIMED',
  'RAIL_SUBMITTED',
  'RAIL_ACKED',
  'RAIL_AMBIGUOUS',
]

export type PayoutEvent =
  | 'claim'
  | 'claim_without_funds'
  | 'submit'
  | 'rail_acked'
  | 'rail_rejected'
  | 'rail_not_presented'
  | 'rail_ambiguous'
  | 'post'
  | 'settled'
  | 'not_found'
  | 'cancel'
  | 'abandon'

/** Who may cause it: a holder of the account's lock, an operator, or the rail's own evidence. */
export type PayoutActor = 'holder' | 'operator' | 'reconciler'

export interface Transition {
  readonly from: PayoutState
  readonly event: PayoutEvent
  readonly to: PayoutState
  readonly by: PayoutActor
}

/**
 * A claim of a payout that is under way already is a take-over by a later holder (recovery): the
 * state stays, the fence goes up, and from then on the new holder's token continues. Without it a
 * later holder could not read "submitted" and act on it while the old one still can (P-27).
 */
export const TRANSITIONS: readonly Transition[] = [
  { from: 'PENDING', event: 'claim', to: 'CLAIMED', by: 'holder' },
  { from: 'PENDING', event: 'claim_without_funds', to: 'FAILED', by: 'holder' },
  { from: 'PENDING', event: 'cancel', to: 'ABANDONED', by: 'operator' },
  { from: 'CLAIMED', event: 'claim', to: 'CLAIMED', by: 'holder' },
  { from: 'RAIL_SUBMITTED', event: 'claim', to: 'RAIL_SUBMITTED', by: 'holder' },
  { from: 'RAIL_ACKED', event: 'claim', to: 'RAIL_ACKED', by: 'holder' },
  { from: 'CLAIMED', event: 'submit', to: 'RAIL_SUBMITTED', by: 'holder' },
  { from: 'RAIL_SUBMITTED', event: 'rail_acked', to: 'RAIL_ACKED', by: 'holder' },
  { from: 'RAIL_SUBMITTED', event: 'rail_rejected', to: 'FAILED', by: 'holder' },
  { from: 'RAIL_SUBMITTED', event: 'rail_not_presented', to: 'CLAIMED', by: 'holder' },
  { from: 'RAIL_SUBMITTED', event: 'rail_ambiguous', to: 'RAIL_AMBIGUOUS', by: 'holder' },
  { from: 'RAIL_ACKED', event: 'post', to: 'POSTED', by: 'holder' },
  { from: 'RAIL_AMBIGUOUS', event: 'settled', to: 'RAIL_ACKED', by: 'reconciler' },
  { from: 'RAIL_AMBIGUOUS', event: 'not_found', to: 'FAILED', by: 'reconciler' },
  { from: 'RAIL_AMBIGUOUS', event: 'abandon', to: 'ABANDONED', by: 'operator' },
]

/** Where `event` leads from `from`; `undefined` when it is not allowed there. */
export function nextState(from: PayoutState, event: PayoutEvent): PayoutState | undefined {
  return TRANSITIONS.find((row) => row.from === from && row.event === event)?.to
}

/** The key of the lock that every write of an account's payouts is made under. */
export function lockKeyOf(accountId: string): string {
  return `payout:${accountId}`
}

/** Names the effect of a payout, the same for its whole life and for every holder. */
export function idempotencyKeyOf(payoutId: string): string {
  return `payout:${payoutId}`
}
