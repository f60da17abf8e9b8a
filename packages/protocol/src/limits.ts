/** Every number of the protocol. Durations are whole milliseconds. */

/** The shortest lease of a session. */
export const MIN_SESSION_TTL_MS = 1_000
/** The longest lease of a session. */
export const MAX_SESSION_TTL_MS = 60_000
/** A session's lease when none is asked for, unless the server says otherwise. */
export const DEFAULT_SESSION_TTL_MS = 15_000

/** A lock's lease when none is asked for, unless the server says otherwise. */
export const DEFAULT_LOCK_TTL_MS = 30_000
/** A lock's longest lease, unless the server says otherwise. */
export const DEFAULT_MAX_LOCK_TTL_MS = 3_600_000

/** The longest wait of one acquire. A client that wants to wait longer asks again. */
export const MAX_WAIT_MS = 30_000

/** A reason for a revocation is read by people later; "oops" tells them nothing. */
export const MIN_REASON_LENGTH = 8

/**
 * How many locks one heartbeat can renew. A client with more sends another heartbeat. Over plain
 * HTTP the body's limit may be reached first: 1 000 renewals fit when keys are short.
 */
export const MAX_RENEWALS_PER_HEARTBEAT = 1_000

/** The items of one page of a listing when no number is asked for. */
export const DEFAULT_PAGE_LIMIT = 100
/** The most items of one page of a listing. */
export const MAX_PAGE_LIMIT = 1_000

/** The body of one HTTP request. */
export const MAX_BODY_BYTES = 65_536

/**
 * One message, an array of frames, of the multiplexed connection; either direction. The longest
 * heartbeat fits.
 */
export const MAX_MESSAGE_BYTES = 2_097_152

/**
 * Calls in flight on one multiplexed connection, and how many of them may be acquires that wait:
 * fewer, so that waits never keep out the release that they are waiting for. A call beyond is
 * refused with `CONTENTION_EXCEEDED` before anything was done.
 */
export const MAX_CALLS_IN_FLIGHT = 8_192
/** How many of the calls in flight may be acquires that wait. */
export const MAX_WAITS_IN_FLIGHT = 4_096
