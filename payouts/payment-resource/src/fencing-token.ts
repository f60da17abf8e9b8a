/**
 * Life of a fencing token, step 7 of 8: is used (payment-resource).
 *
 * The account's row is the fence of its lock, `payout:<accountId>`: one per key, whatever payout is
 * written (P-26). Every statement that changes a payout, the ledger or a balance carries one of the
 * two predicates below on that row, and stamps the token, in the same statement (FR-15). The row
 * stays locked until the transaction ends, so that writes of two holders are never interleaved.
 *
 * `$2` is the token; `$3` is whether fencing is enforced, false in the experiment only (FR-29).
 * Switched off, a fence still never goes down (INV-05).
 */
export const ADMISSION = '(a.fence < $2::bigint OR NOT $3::boolean)'

/** Of every write that follows a grant's admission. */
export const CONTINUATION = '(a.fence = $2::bigint OR NOT $3::boolean)'

/** What a write makes of the fence. */
export const STAMP = 'fence = greatest(a.fence, $2::bigint)'
