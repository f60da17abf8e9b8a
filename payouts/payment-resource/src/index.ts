/**
 * The payment resource: guard 1 of the payouts. It owns `paydb`: accounts with their fence, payouts
 * and their states, and an append-only ledger. It trusts nobody, the lock service included: it
 * compares the presented token with the account's fence in the statement that writes.
 *
 * What it does not do: hold locks, call the rail, retry, or move an ambiguous payout by time alone.
 *
 * @packageDocumentation
 */
export { paymentSettings, startPaymentResource } from './payment-resource.ts'
export type { Discrepancy, DiscrepancyKind, Reconciliation } from './reconcile.ts'
