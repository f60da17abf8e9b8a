/**
 * How long each call waits for a connection and then for its answer, and how often it is made
 * again. No hop waits longer than its caller, or the caller times out first and manufactures an
 * ambiguity.
 */
export interface Hop {
  readonly connectMs: number
  /** For the answer. An acquire that waits adds its wait. */
  readonly readMs: number
  /** Tries after the first, when the failure is a retryable one. */
  readonly retries: number
  /** Whether a caller awaits it: if not, it does not keep the process alive. */
  readonly awaited: boolean
}

export const acquireHop: Hop = { connectMs: 500, readMs: 2_000, retries: 5, awaited: true }
export const renewHop: Hop = { connectMs: 500, readMs: 2_000, retries: 1, awaited: true }
export const releaseHop: Hop = { connectMs: 500, readMs: 2_000, retries: 0, awaited: true }
/** Its retries have to fit into a third of the session's lease as well. */
export const heartbeatHop: Hop = { connectMs: 300, readMs: 1_000, retries: 2, awaited: false }
/** A session opened twice leaves one that nobody uses, which ends with its lease. */
export const openSessionHop: Hop = { connectMs: 500, readMs: 2_000, retries: 5, awaited: true }
export const closeSessionHop: Hop = { connectMs: 500, readMs: 2_000, retries: 1, awaited: true }
export const inspectHop: Hop = { connectMs: 300, readMs: 1_000, retries: 2, awaited: true }
/** Never made again: the second might hit the next holder. */
export const revokeHop: Hop = { connectMs: 500, readMs: 2_000, retries: 0, awaited: true }

export function timeoutMsOf(hop: Hop): number {
  return hop.connectMs + hop.readMs
}
