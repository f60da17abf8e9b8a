/**
 * Life of a fencing token, step 1 of 8: is.
 *
 * A fencing token is a `bigint` from 1 to 2^63 − 1. For one key, every grant's token is above the
 * token of every earlier grant, for ever: across release, expiry, revocation, restart, fail-over
 * and restore (FR-02, INV-04). Tokens of different keys are not comparable. Gaps mean nothing.
 *
 * It is never a `number` (a `number` is exact only to 2^53) and never compared as text
 * (`"9" > "10"`). The order of the whole life: is (lock-api) · is minted (store-*) · is granted
 * (engine) · is spelled (protocol) · is carried (lock-client) · is checked (guard) · is used (the
 * resource) · is proven (harness).
 */
export const MAX_FENCING_TOKEN: bigint = 2n ** 63n - 1n

/**
 * Returns `token` when it is a fencing token.
 *
 * @param field how the caller calls the argument; it opens the error's message
 * @throws TypeError when it is not a `bigint`
 * @throws RangeError when it is outside 1 … 2^63 − 1
 */
export function checkFencingToken(token: bigint, field = 'fencingToken'): bigint {
  if (typeof token !== 'bigint') {
    throw new TypeError(`${field} must be a bigint, got ${typeof token}`)
  }
  if (token < 1n || token > MAX_FENCING_TOKEN) {
    throw new RangeError(`${field} must be from 1 to ${MAX_FENCING_TOKEN}, got ${token}`)
  }
  return token
}
