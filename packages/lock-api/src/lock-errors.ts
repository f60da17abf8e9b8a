/**
 * The failures of the contract. Refusal ("held by another") is a value, not an error; these are
 * what is left. The retry verdict is a type: catch `RetryableLockError` or `TerminalLockError`.
 * "Retryable" is about the acquire, **never about the side effect** that the lock protects.
 *
 * None carries a driver's error as its `cause`: drivers differ between stores, and their errors go
 * to the log with the trace id.
 */
export abstract class LockError extends Error {}

/** The call may be made again: bounded, and with jittered backoff (FR-28). */
export abstract class RetryableLockError extends LockError {
  /** At least this many milliseconds, when the service said so. */
  readonly retryAfterMs: number | undefined

  constructor(message: string, options: { readonly retryAfterMs?: number | undefined } = {}) {
    super(message)
    this.retryAfterMs = options.retryAfterMs
  }
}

/** Never made again inside the same unit of work. */
export abstract class TerminalLockError extends LockError {}

/**
 * The grant is gone: the local deadline passed, `renew` said lost, or a handle already known to be
 * lost was used. Terminal. The caller aborts the critical section and does not acquire again
 * inside the same unit of work. What was already sent to a resource may still arrive; only the
 * resource's guard refuses it.
 */
export class LockLostError extends TerminalLockError {
  override readonly name = 'LockLostError'
  readonly key: string
  readonly fencingToken: bigint

  constructor(key: string, fencingToken: bigint, why: string) {
    super(`lock ${JSON.stringify(key)} with token ${fencingToken} is lost: ${why}`)
    this.key = key
    this.fencingToken = fencingToken
  }
}

/**
 * A guard refused the token: a higher one, or a floor above it, was seen first. Terminal and never
 * retried with any token: this process has been superseded. An incident: a stale holder reached a
 * resource. Healthy systems count zero of these.
 */
export class FencedOutError extends TerminalLockError {
  override readonly name = 'FencedOutError'
  readonly key: string
  readonly presentedToken: bigint
  readonly storedToken: bigint

  constructor(key: string, presentedToken: bigint, storedToken: bigint) {
    super(
      `fenced out of ${JSON.stringify(key)}: presented token ${presentedToken}, the guard has seen ${storedToken}`,
    )
    this.key = key
    this.presentedToken = presentedToken
    this.storedToken = storedToken
  }
}

/**
 * The session named in the call is not alive, so nothing was granted. Terminal for the session
 * and for every lock on it; open a new one. `unknown` also covers a session that expired so long
 * ago that the store forgot it.
 */
export class SessionDeadError extends TerminalLockError {
  override readonly name = 'SessionDeadError'
  readonly state: 'unknown' | 'expired'

  constructor(state: 'unknown' | 'expired') {
    super(
      state === 'unknown'
        ? 'the session is unknown: it was never opened, was closed, or expired long ago'
        : 'the session has expired, and every lock on it with it',
    )
    this.state = state
  }
}

/**
 * A store-level conflict or an unreachable store prevented a decision within the deadline.
 * Retryable. It means neither "held" nor "lost": nothing is known, and a write that was sent may
 * have been applied.
 */
export class ContentionError extends RetryableLockError {
  override readonly name = 'ContentionError'
}

/**
 * The node cannot decide now: an election, a primary that became read-only. Retryable after a
 * short delay.
 */
export class NotLeaderError extends RetryableLockError {
  override readonly name = 'NotLeaderError'
}
