/**
 * What an error that no caller could be given was about: a heartbeat that failed (the locks are
 * still held, until their deadline), a release at the end of `using` or of a `hold` that failed or
 * found the grant gone, a session that could not be closed, a listener that threw.
 */
export type Background = 'heartbeat' | 'release' | 'close' | 'listener'

/** Where the client reports what no caller of its own is there to be told. */
export interface ReportHooks {
  /** For errors that no caller can be given. May not throw; what it throws is dropped. */
  readonly onError?: ((error: unknown, during: Background) => void) | undefined
  /**
   * A session was lost: its lease was over before a heartbeat got through, or the service said so.
   * Count these as `lock_session_lost_total`. Not called for a session that was closed.
   */
  readonly onSessionLost?: ((ownerId: string) => void) | undefined
}

/** The way to the application's hooks. Nothing that it throws comes back. */
export class Reports {
  readonly #hooks: ReportHooks

  constructor(hooks: ReportHooks) {
    this.#hooks = hooks
  }

  error(error: unknown, during: Background): void {
    try {
      this.#hooks.onError?.(error, during)
    } catch {
      // There is nobody left to tell.
    }
  }

  sessionLost(ownerId: string): void {
    this.guard('listener', () => this.#hooks.onSessionLost?.(ownerId))
  }

  /** Calls the application's `listener`, which may be an `async` function whatever its type says. */
  guard(during: Background, listener: () => unknown): void {
    try {
      Promise.resolve(listener()).catch((error: unknown) => this.error(error, during))
    } catch (error) {
      this.error(error, during)
    }
  }
}
