/**
 * The fragments of SQL that say what lives. Time is always the database's `now()`: the start of
 * the statement. Never `clock_timestamp()`, with which one statement would see two instants, and
 * never a client's clock.
 */

/** What `expires_at` says of a row whose grant has ended. */
export const VACANT = `'-infinity'::timestamptz`

/** Does this session live? NULL when there is no record of it. Looked up in the index. */
export function sessionLives(sessionId: string): string {
  return `(SELECT s.expires_at > now() FROM lock_session AS s WHERE s.session_id = ${sessionId})`
}

/**
 * Is this row of `lock_entry` a live grant? For reading. Not to decide a take-over by: a statement
 * meets the newest version of a row that it changes, but sees sessions as of its own start, and a
 * session that was opened since would look dead.
 */
export function grantLives(entry: string): string {
  return `(${entry}.expires_at > now() AND ${sessionLives(`${entry}.session_id`)} IS TRUE)`
}

/** When a lease that begins now ends. */
export function leaseEnd(ttlMs: string): string {
  return `now() + ${ttlMs} * interval '1 ms'`
}

/** An instant as a decimal number of milliseconds, for `instant`. */
export function epochMs(instant: string): string {
  return `(date_part('epoch', ${instant}) * 1000)::text`
}

export function instant(text: string | null | undefined): Date {
  return new Date(Math.floor(Number(text)))
}
