/**
 * A client's liveness. Every grant hangs on a session, and dies with it (FR-04). A session id is a
 * secret of at least 128 random bits: whoever knows it can act for the session.
 */
export interface SessionRegistry {
  /**
   * Opens a session that lives for `ttlMs` from now unless a heartbeat prolongs it.
   *
   * @returns its id
   */
  openSession(ownerId: string, ttlMs: number): Promise<string>

  /**
   * Prolongs a live session to `ttlMs` from now. It never creates one, and never shortens one: a
   * late duplicate is harmless.
   *
   * @returns `false`: the session is dead, and every lock on it. **Terminal, do not retry.** Never
   *   `false` for anything transient.
   */
  heartbeat(sessionId: string, ttlMs: number): Promise<boolean>

  /**
   * Ends a session and releases every lock on it. Idempotent.
   *
   * @returns how many live locks that released
   */
  closeSession(sessionId: string): Promise<number>

  /** The keys of the session's live grants; empty when it is not alive. Advisory. */
  locksOf(sessionId: string): Promise<ReadonlySet<string>>
}
