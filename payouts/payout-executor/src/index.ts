/**
 * The payout executor: polls for payouts, takes the account's lock, and composes the critical
 * section. It has no database and decides nothing; the two guards do.
 *
 * @packageDocumentation
 */
export { executorSettings } from './executor-settings.ts'
export { startPayoutExecutor } from './payout-executor.ts'
