/**
 * The argument checks that every implementation of the contracts shares. A bad argument is a
 * caller's bug, never a lock outcome: each check throws a `TypeError` (wrong type) or a
 * `RangeError` (right type, value out of range) whose message names the field, the value and the
 * range, and each returns the value it was given.
 */

/** A key is 1 to 512 bytes of UTF-8. */
export const MAX_KEY_BYTES = 512
/** An owner's name is 1 to 64 characters (UTF-16 code units). */
export const MAX_OWNER_ID_LENGTH = 64
/** The longest lease that any store must accept: 365 days. A service may allow less. */
export const MAX_TTL_MS = 31_536_000_000
/** The longest wait of one `acquire`: 24 hours. A service may allow less. */
export const MAX_WAIT_MS = 86_400_000
/** Operators end in an audit record, which is read by people: 1 to 128 characters. */
export const MAX_OPERATOR_LENGTH = 128
/** Reasons do as well: 1 to 1 024 characters. */
export const MAX_REASON_LENGTH = 1_024

/** 1 to 512 bytes of UTF-8, no control characters, no lone surrogates, not only white space. */
export function checkKey(key: string, field = 'key'): string {
  checkText(key, field)
  const bytes = utf8Length(key)
  if (bytes > MAX_KEY_BYTES) {
    throw new RangeError(`${field} must be from 1 to ${MAX_KEY_BYTES} bytes of UTF-8, got ${bytes}`)
  }
  return key
}

/** 1 to 64 characters, no control characters, not only white space. */
export function checkOwnerId(ownerId: string, field = 'ownerId'): string {
  return checkLength(ownerId, field, MAX_OWNER_ID_LENGTH)
}

/** Not blank, no control characters. Stores decide what else makes a session id. */
export function checkSessionId(sessionId: string, field = 'sessionId'): string {
  return checkText(sessionId, field)
}

/** 1 to 128 characters, no control characters, not only white space. */
export function checkOperator(operator: string, field = 'operator'): string {
  return checkLength(operator, field, MAX_OPERATOR_LENGTH)
}

/** 1 to 1 024 characters, no control characters, not only white space. */
export function checkReason(reason: string, field = 'reason'): string {
  return checkLength(reason, field, MAX_REASON_LENGTH)
}

/** A whole number of milliseconds from 1 to `max` (365 days unless the service allows less). */
export function checkTtlMs(ttlMs: number, field = 'ttlMs', max: number = MAX_TTL_MS): number {
  return checkWholeMs(ttlMs, field, 1, max)
}

/** A whole number of milliseconds from 0 (do not wait) to `max` (24 hours unless less is allowed). */
export function checkMaxWaitMs(
  maxWaitMs: number,
  field = 'maxWaitMs',
  max: number = MAX_WAIT_MS,
): number {
  return checkWholeMs(maxWaitMs, field, 0, max)
}

/** The instant's milliseconds since the epoch; throws when `instant` is not a valid `Date`. */
export function checkInstant(instant: Date, field: string): number {
  if (!(instant instanceof Date)) {
    throw new TypeError(`${field} must be a Date, got ${typeof instant}`)
  }
  const ms = instant.getTime()
  if (Number.isNaN(ms)) throw new RangeError(`${field} must be a valid date, got an invalid one`)
  return ms
}

/** A string that is not blank and holds no control character and no lone surrogate. */
export function checkText(text: string, field: string): string {
  if (typeof text !== 'string') {
    throw new TypeError(`${field} must be a string, got ${typeof text}`)
  }
  if (text.trim() === '') {
    throw new RangeError(
      `${field} must not be blank, got ${text.length} characters, none but white space`,
    )
  }
  const bad = /[\p{Cc}\p{Cs}]/u.exec(text)
  if (bad !== null) {
    const code = text.charCodeAt(bad.index).toString(16).padStart(4, '0')
    throw new RangeError(
      `${field} must hold no control character and no lone surrogate, got U+${code.toUpperCase()} at position ${bad.index}`,
    )
  }
  return text
}

function checkLength(text: string, field: string, max: number): string {
  checkText(text, field)
  if (text.length > max) {
    throw new RangeError(`${field} must be from 1 to ${max} characters, got ${text.length}`)
  }
  return text
}

function checkWholeMs(value: number, field: string, min: number, max: number): number {
  if (typeof value !== 'number') {
    throw new TypeError(`${field} must be a number of milliseconds, got ${typeof value}`)
  }
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new RangeError(
      `${field} must be a whole number of milliseconds from ${min} to ${max}, got ${value}`,
    )
  }
  return value
}

/** How many bytes UTF-8 needs; plain ECMAScript has no encoder to ask. */
function utf8Length(text: string): number {
  let bytes = 0
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x1_0000 ? 3 : 4
  }
  return bytes
}
