import type { LockHandle } from './lock-handle.ts'
import type { LockInfo } from './lock-info.ts'
import type { LockOutcome } from './lock-outcome.ts'

/**
 * What a backend implements: seven methods here and four in `SessionRegistry`, each one atomic
 * step. That is enough for a working lock service; whatever else a store can do is a capability
 * (see `capabilities.ts`). Prove an implementation with the conformance kit, `@dlock/tck`.
 *
 * In every method: time is the store's own clock, never the caller's; a failure that leaves the
 * outcome unknown is a `ContentionError` or a `NotLeaderError`, never `undefined` or `false`; no
 * driver's error escapes; no method waits on a row or a key longer than the store's call deadline.
 */
export interface LockStore {
  /**
   * Grants `key` if it is free, if its lease has expired, or if its holder's session is dead. The
   * token is then above every token ever issued for the key, revoked ones included. The session
   * that holds the key already gets its own live grant again: same token, nothing minted, expiry
   * not shortened (decision 3).
   *
   * The handle's `clientDeadlineNanos` counts from before the request was sent.
   *
   * @returns `undefined`: held by another live grant
   * @throws SessionDeadError when `sessionId` is not alive; nothing is granted
   */
  tryInsert(
    key: string,
    ownerId: string,
    sessionId: string,
    ttlMs: number,
  ): Promise<LockHandle | undefined>

  /**
   * Extends the grant with exactly this key and token, while it and its session are alive.
   *
   * @returns the same grant, same token, expiring no earlier than before; or `undefined`: **lost,
   *   now, terminal**. Never `undefined` for anything transient: mixing the two is the most common
   *   bug of home-grown lock clients.
   */
  extend(key: string, fencingToken: bigint, ttlMs: number): Promise<LockHandle | undefined>

  /** Compare-and-delete on (key, token) and nothing else. `false`: that grant is gone already. */
  deleteIfOwner(key: string, fencingToken: bigint): Promise<boolean>

  /** The live grant of `key`, if any. Point in time, possibly stale: **never decides anything**. */
  read(key: string): Promise<LockInfo | undefined>

  /**
   * In one atomic step: deletes the live grant, raises the floor above its token, appends the audit
   * record. Every later token of the key is above the floor. Not held: `revoked: false`, and
   * nothing is written.
   */
  revoke(key: string, operator: string, reason: string): Promise<LockOutcome>

  /**
   * Clears away what had expired both at `now` and by the store's own clock, and says how many
   * grants that was. Idempotent and safe on many replicas at once. A liveness aid only: expiry is
   * true before it runs.
   */
  reapExpired(now: Date): Promise<number>

  /** `"pg"`, `"etcd"`, …: only ever a metric label, never a branch. */
  backendId(): string
}
