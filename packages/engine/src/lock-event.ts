/**
 * What an engine tells its listeners, as it happens in this process; `at` is the wall clock, for
 * people. No event carries a session id.
 *
 * Not promised: that every end of a grant is seen. An engine reports what went through it, plus
 * the expiry of grants that it made or renewed. Such a grant, when another process released it
 * after its lease had been prolonged here, may be reported as expired.
 */
export type LockEvent =
  | {
      readonly type: 'lock_granted'
      readonly at: Date
      readonly key: string
      readonly ownerId: string
      readonly fencingToken: bigint
      /** From the call to the grant, in milliseconds. */
      readonly waitedMs: number
    }
  | {
      readonly type: 'lock_contended'
      readonly at: Date
      readonly key: string
      readonly ownerId: string
    }
  | {
      readonly type: 'lock_released' | 'lease_expired'
      readonly at: Date
      readonly key: string
      readonly ownerId: string
      readonly fencingToken: bigint
    }
  | {
      readonly type: 'lock_revoked'
      readonly at: Date
      readonly key: string
      readonly operator: string
      readonly reason: string
      readonly previousOwnerId: string
      readonly previousToken: bigint
      readonly newTokenFloor: bigint
    }
  | {
      readonly type: 'session_opened' | 'session_closed' | 'session_expired'
      readonly at: Date
      readonly ownerId: string
    }
  | {
      /** The store went backwards, and this engine has stopped granting. Pages somebody. */
      readonly type: 'token_regression'
      readonly at: Date
      readonly key: string
      /** What the store said now … */
      readonly fencingToken: bigint
      /** … and what it had said before. */
      readonly highestSeen: bigint
    }
