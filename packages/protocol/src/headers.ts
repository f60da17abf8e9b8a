/** On every write: who is calling. */
export const OWNER_ID_HEADER = 'X-Owner-Id'
/** On every protected write: the token, spelled as in `fencing-token.ts`. */
export const FENCING_TOKEN_HEADER = 'X-Fencing-Token'
/** On `DELETE /v1/locks/{key}`, optional: the session whose grant it is; spares the server a read. */
export const SESSION_ID_HEADER = 'X-Session-Id'
/** On the payout's writes: derived from the payout's id, the same for its whole life. */
export const IDEMPOTENCY_KEY_HEADER = 'X-Idempotency-Key'
/** W3C Trace Context. */
export const TRACEPARENT_HEADER = 'traceparent'

/**
 * An owner's name may hold any character, a header's value only bytes: the name travels as its
 * UTF-8, which is what `curl` sends too. Node and `fetch` take and give header values with one
 * character per byte, so that is what these two write and read.
 *
 * `node:http` does so only when the body, too, is given as bytes: a text and the headers before it are
 * written in one encoding.
 *
 * HTTP strips white space at both ends of a value: a name that begins or ends with it cannot be
 * sent this way.
 */
export function formatHeaderText(text: string): string {
  if (ASCII.test(text)) return text
  return String.fromCharCode(...new TextEncoder().encode(text))
}

/** The text of a header's value, or `undefined` when its bytes are not UTF-8. */
export function parseHeaderText(value: string): string | undefined {
  if (ASCII.test(value)) return value
  try {
    const bytes = Uint8Array.from(value, (character) => character.charCodeAt(0))
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

const ASCII = /^[\x20-\x7e]*$/
