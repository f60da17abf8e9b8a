import { checkInstant, checkKey, checkOwnerId, checkSessionId } from './checks.ts'
import { checkFencingToken } from './fencing-token.ts'

/**
 * Proof of a grant. The only object that authorises a protected side effect, and only together
 * with a guard that checks its token: holding a handle is a belief, which a pause can outdate.
 *
 * - `fencingToken` goes to the resource as an explicit argument or the `X-Fencing-Token` header;
 *   never through a global, an `AsyncLocalStorage` or a request scope (contract 2.7).
 * - `clientDeadlineNanos` is **authoritative** for the process that made the handle: a reading of
 *   its monotonic clock, in nanoseconds, after which the lease must be treated as lost (FR-11). It
 *   means nothing in any other process.
 * - `serverExpiry` is **informational**: the store's wall clock, for logs and people. Nothing may
 *   be decided by comparing it with a local clock.
 *
 * Immutable; free to share. A look-alike object is not a `LockHandle` for the type checker.
 */
export class LockHandle {
  /** Makes the type nominal: an object literal of the same shape is not a handle. */
  readonly #grant = true
  readonly key: string
  readonly ownerId: string
  /** A secret of the session that holds the grant: never log it. */
  readonly sessionId: string
  readonly fencingToken: bigint
  readonly clientDeadlineNanos: bigint
  readonly #serverExpiryMs: number

  /**
   * @throws TypeError when an argument has the wrong type
   * @throws RangeError when one is blank or out of range
   */
  constructor(
    key: string,
    ownerId: string,
    sessionId: string,
    fencingToken: bigint,
    clientDeadlineNanos: bigint,
    serverExpiry: Date,
  ) {
    this.key = checkKey(key)
    this.ownerId = checkOwnerId(ownerId)
    this.sessionId = checkSessionId(sessionId)
    this.fencingToken = checkFencingToken(fencingToken)
    if (typeof clientDeadlineNanos !== 'bigint') {
      throw new TypeError(`clientDeadlineNanos must be a bigint, got ${typeof clientDeadlineNanos}`)
    }
    this.clientDeadlineNanos = clientDeadlineNanos
    this.#serverExpiryMs = checkInstant(serverExpiry, 'serverExpiry')
    Object.freeze(this)
  }

  /** For logs and people. A fresh `Date` each time, so that nobody can change the handle's. */
  get serverExpiry(): Date {
    return new Date(this.#serverExpiryMs)
  }

  /** True when every component is equal. */
  equals(other: LockHandle): boolean {
    return (
      other instanceof LockHandle &&
      other.#grant === this.#grant &&
      other.key === this.key &&
      other.ownerId === this.ownerId &&
      other.sessionId === this.sessionId &&
      other.fencingToken === this.fencingToken &&
      other.clientDeadlineNanos === this.clientDeadlineNanos &&
      other.#serverExpiryMs === this.#serverExpiryMs
    )
  }

  /** The same grant as seen by a process whose deadline for it is `clientDeadlineNanos`. */
  withClientDeadline(clientDeadlineNanos: bigint): LockHandle {
    return new LockHandle(
      this.key,
      this.ownerId,
      this.sessionId,
      this.fencingToken,
      clientDeadlineNanos,
      this.serverExpiry,
    )
  }
}
