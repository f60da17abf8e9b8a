import { MAX_FENCING_TOKEN } from '@dlock/lock-api'

/**
 * Life of a fencing token, step 4 of 8: is spelled (protocol).
 *
 * On the wire a token is a decimal string, in the `X-Fencing-Token` header and in bodies alike: a
 * JSON number is exact only to 2^53 (P-25). There is one spelling per token, from "1" to
 * "9223372036854775807": no sign, no leading zero, no white space, no exponent, no other digits.
 * Whatever else arrives is `INVALID_TOKEN`, never coerced, never 0.
 */
export function formatFencingToken(token: bigint): string {
  return token.toString()
}

/** The token that `text` spells, or `undefined` when it spells none. */
export function parseFencingToken(text: string): bigint | undefined {
  if (!FENCING_TOKEN_PATTERN.test(text)) return undefined
  const token = BigInt(text)
  return token > MAX_FENCING_TOKEN ? undefined : token
}

/** What a spelled token looks like; the upper bound is checked apart. */
export const FENCING_TOKEN_PATTERN: RegExp = /^[1-9][0-9]{0,18}$/
