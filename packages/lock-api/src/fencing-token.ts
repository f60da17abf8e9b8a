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

/** How a token is spelled, in a header and in JSON; `MAX_FENCING_TOKEN` is checked apart. */
export const FENCING_TOKEN_PATTERN: RegExp = /^[1-9][0-9]{0,18}$/

/**
 * The token that `text` spells, or `undefined` when it spells none. Strict: decimal digits from "1"
 * to "9223372036854775807", no sign, no leading zero, no white space. Never coerced, never 0. It is
 * here because both sides read it: the service (protocol) and the resource (guard), which must
 * depend on nothing but this package.
 */
export function parseFencingToken(text: string): bigint | undefined {
  if (!FENCING_TOKEN_PATTERN.test(text)) return undefined
  const token = BigInt(text)
  return token > MAX_FENCING_TOKEN ? undefined : token
}
