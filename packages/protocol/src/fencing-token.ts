export { FENCING_TOKEN_PATTERN, parseFencingToken } from '@dlock/lock-api'

/**
 * Life of a fencing token, step 4 of 8: is spelled (protocol).
 *
 * On the wire a token is a decimal string, in the `X-Fencing-Token` header and in bodies alike: a
 * JSON number is exact only to 2^53 (P-25). There is one spelling per token, from "1" to
 * "9223372036854775807": no sign, no leading zero, no white space, no exponent, no other digits.
 * Whatever else arrives is `INVALID_TOKEN`, never coerced, never 0. (The reading is in `lock-api`,
 * because a resource's guard reads the header too and may depend on nothing else.)
 */
export function formatFencingToken(token: bigint): string {
  return token.toString()
}
