import type { AbortSignalLike } from './abort-signal.ts'
import type { LockHandle } from './lock-handle.ts'
import type { LockInfo } from './lock-info.ts'
import type { LockOutcome } from './lock-outcome.ts'

/**
 * The whole contract that a caller sees. Implementations are safe to share between concurrent
 * tasks. A bad argument rejects with `TypeError` or `RangeError`: a caller's bug, never an outcome.
 *
 * What it does not promise: that at most one process *believes* it holds a lock. A paused process
 * believes it, rightly. What it promises is order: for a key, a later grant's token is higher, so
 * that a resource can refuse the earlier one.
 */
export interface LockService {
  /**
   * Acquires `key`, waiting up to `maxWaitMs` for a conflicting holder to go away. Retries inside
   * are bounded and jittered (FR-28). Never takes longer than `maxWaitMs` plus one round trip.
   *
   * @param key 1 … 512 bytes of UTF-8 without control characters
   * @param ownerId who is asking, 1 … 64 characters; identifies nobody, a session does
   * @param ttlMs the lease asked for, whole milliseconds from 1; the service may grant more, never less
   * @param maxWaitMs whole milliseconds from 0
   * @param signal abandons the wait: a grant that was already recorded is released, then the call
   *   rejects with the signal's reason
   * @returns a handle, or `undefined` when the wait ended while another held the lock. `undefined`
   *   means **not mine, do not proceed** (FR-27). It is an expected outcome, not an error, and must
   *   not be retried in a tight loop.
   * @throws ContentionError when the store could not decide within the deadline
   * @throws NotLeaderError when the node cannot decide now
   * @throws SessionDeadError when the caller's own session is not alive
   */
  acquire(
    key: string,
    ownerId: string,
    ttlMs: number,
    maxWaitMs: number,
    signal?: AbortSignalLike,
  ): Promise<LockHandle | undefined>

  /**
   * One attempt: no waiting, no backoff.
   *
   * @returns a handle, or `undefined` when anybody else holds the lock: **not mine, do not
   *   proceed**. The normal outcome under contention; not to be retried in a tight loop.
   * @throws ContentionError, NotLeaderError, SessionDeadError as `acquire`
   */
  tryAcquire(key: string, ownerId: string, ttlMs: number): Promise<LockHandle | undefined>

  /**
   * Extends the lease of a grant that the caller still owns, by the length it was granted for.
   *
   * @returns a new handle with the **same token** and a later deadline, or `undefined`: **the lock
   *   is lost, now, and for good**: expired, revoked or taken over. Terminal for the handle; the
   *   caller abandons the critical section. A network blip, a pool time-out or a serialization
   *   failure is never `undefined`; it is a `ContentionError`, and the lock may well be held still.
   * @throws ContentionError, NotLeaderError when nothing is known; renew again before the deadline
   */
  renew(handle: LockHandle): Promise<LockHandle | undefined>

  /**
   * Compare-and-delete of the caller's own grant, on (key, token): releasing somebody else's lock
   * cannot be expressed (FR-05). Idempotent.
   *
   * @returns `true` when this handle's grant was the one removed; `false` when it was gone already,
   *   which is informational and never an error.
   */
  release(handle: LockHandle): Promise<boolean>

  /**
   * A diagnostic snapshot of a key, or `undefined` when nobody held it. Stale the moment it
   * returns, and **never usable for a correctness decision** (FR-07).
   */
  inspect(key: string): Promise<LockInfo | undefined>

  /**
   * Break-glass: deletes the current grant whoever owns it, raises the key's token floor, and
   * appends an audit record (FR-08, INV-04).
   *
   * At once: the holder's renewals say lost, and every later grant has a token above the floor.
   * **Not** at once: a resource that has seen no higher token goes on accepting the displaced
   * holder's until the floor was pushed to its guard, or a later holder wrote there (decision 5).
   *
   * @param operator a person's or an automation's name, not blank; recorded
   * @param reason free text, not blank; recorded and alerted on
   */
  forceRevoke(key: string, operator: string, reason: string): Promise<LockOutcome>
}

/**
 * A service whose calls can be bound to one session. `LockService` names an owner, not a session;
 * every call of the bound service is made for that session.
 */
export interface SessionScope {
  forSession(sessionId: string): LockService
}
