import type { LockHandle } from './lock-handle.ts'
import type { LockInfo } from './lock-info.ts'
import type { LockOutcome } from './lock-outcome.ts'
import type { LockStore } from './lock-store.ts'

/**
 * What a store can do beyond the two closed contracts (decision 11). Each is optional and apart
 * from the others; an engine looks once, at start-up, and does without what is missing.
 */
export interface StoreCapabilities {
  readonly waiting?: WaitingCapability
  readonly queue?: QueueCapability
  readonly transfer?: TransferCapability
  readonly sessions?: SessionCapability
  readonly listing?: ListingCapability
  readonly audit?: AuditCapability
  readonly tokens?: TokenCapability
  readonly health?: HealthCapability
  readonly ttlBounds?: TtlBounds
}

/** A store that has any capability says so here. */
export interface CapableStore {
  capabilities(): StoreCapabilities
}

/** What `store` can do; nothing when it does not say. */
export function capabilitiesOf(store: LockStore & Partial<CapableStore>): StoreCapabilities {
  return store.capabilities?.() ?? {}
}

/** The end of a grant that somebody waits for is announced, so that waiters need not poll. */
export interface WaitingCapability {
  /**
   * Marks the live grant of `key` as wanted: its release, revocation, or its session's close will
   * be announced. Its expiry is not announced; the answer says when that is due.
   *
   * @returns the milliseconds, by the store's clock, until the grant or its session ends if nobody
   *   prolongs it; or `undefined` when the key can be had now, so that the caller tries again at
   *   once and misses no release that came before the mark
   */
  want(key: string): Promise<number | undefined>

  /**
   * Calls `onFreed` with each wanted key that was freed, by any process, and `onGap` whenever
   * announcements may have been missed (a lost connection): wake everybody. Neither may throw.
   *
   * @returns once listening (or once it is known that the store can only be polled), how to stop
   */
  subscribe(onFreed: (key: string) => void, onGap: () => void): Promise<Unsubscribe>
}

/** Stops listening; no announcement arrives after it has resolved. Idempotent. */
export type Unsubscribe = () => Promise<void>

/**
 * First in, first out among the processes that wait for a key. This store is one of them, with at
 * most one place in each queue.
 */
export interface QueueCapability {
  /**
   * Stands behind everybody who waits for the key already; one who stands there stays, and a grant
   * of the key moves it to the end. Whoever stands behind another process, or not in the queue while
   * somebody else does, is refused the key by `tryInsert` and `transfer` as if it were held, and
   * told by `want` until when at most. To be repeated at least every 2 s: a place that nobody keeps
   * lapses.
   *
   * Fairness and nothing else is promised: a place may lapse early when the store is in trouble.
   *
   * @throws ContentionError, NotLeaderError when it may not stand in the queue
   */
  join(key: string): Promise<void>

  /** Gives the place up, if it has one. Never rejects: a place that cannot be removed lapses. */
  leave(key: string): Promise<void>
}

/** The release of one grant and the next one's insertion in one atomic step: no window between. */
export interface TransferCapability {
  /**
   * Deletes the grant (key, token), as `deleteIfOwner`, and grants the key to `next`, as
   * `tryInsert`, in one step. When (key, token) is gone, nothing is granted; when `next`'s session
   * is dead, or another process is before this one in the queue, the key is left free. A mark of
   * `want` is not lost: it passes to the new grant, or the key is announced as freed.
   */
  transfer(key: string, fencingToken: bigint, next: NextHolder): Promise<Transfer>
}

/** Who gets a key that is handed over: as the arguments of `tryInsert`. */
export interface NextHolder {
  readonly ownerId: string
  readonly sessionId: string
  readonly ttlMs: number
}

/** `released`: (key, token) was the grant removed. `granted`: the next one, if one was made. */
export interface Transfer {
  readonly released: boolean
  readonly granted: LockHandle | undefined
  /** Nothing was granted, for another process is before this one in the `QueueCapability`'s queue. */
  readonly passedOver?: true
}

/** Whose a session is, and whether it lives. */
export interface SessionCapability {
  describeSession(sessionId: string): Promise<SessionState>
}

/** `remainingMs`: until it ends, by the store's clock, if no heartbeat prolongs it. */
export type SessionState =
  | { readonly state: 'live'; readonly ownerId: string; readonly remainingMs: number }
  | { readonly state: 'expired' | 'unknown' }

/** Paged views for operators; advisory, like `read`. Prefixes are exact: no pattern, no escape. */
export interface ListingCapability {
  listLocks(query: LockQuery): Promise<Page<LockInfo>>
  listSessions(query: PageQuery): Promise<Page<SessionInfo>>
  listRevocations(query: PageQuery): Promise<Page<Revocation>>
}

/** Which page. */
export interface PageQuery {
  /** From the page before; `undefined` for the first. */
  readonly cursor: string | undefined
  /** 1 … 1 000. */
  readonly limit: number
}

/** Which locks, and which page of them. */
export interface LockQuery extends PageQuery {
  /** Keys that begin with exactly this; `""` for all. In order of the key's UTF-8 bytes. */
  readonly prefix: string
}

/** Some of the items, each of which is on one page and no other while nothing changes. */
export interface Page<T> {
  readonly items: readonly T[]
  /** Where the next page begins; `undefined` when this is the last. */
  readonly nextCursor: string | undefined
}

/** A live session as people see it; stale the moment it was made. */
export interface SessionInfo {
  /** Names the session to people. Not its id, which is a secret, and of no use as one. */
  readonly sessionRef: string
  readonly ownerId: string
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly heldLockCount: number
}

/** The audit record of a revocation (FR-08). Append-only: it never changes and never goes. */
export interface Revocation {
  readonly revocationId: string
  readonly key: string
  readonly previousOwnerId: string
  readonly previousToken: bigint
  readonly newTokenFloor: bigint
  readonly operator: string
  readonly reason: string
  readonly revokedAt: Date
}

/** Revocation that names its audit record, and can refuse when the grant is not the one meant. */
export interface AuditCapability {
  /** As `revoke`; when `expectedToken` is given, only that grant is revoked. */
  revokeExpecting(
    key: string,
    operator: string,
    reason: string,
    expectedToken: bigint | undefined,
  ): Promise<AuditedRevocation>
}

/** What became of it. `stale`: another grant than the one expected holds the key, untouched. */
export type AuditedRevocation =
  | { readonly kind: 'revoked'; readonly outcome: LockOutcome; readonly revocationId: string }
  | { readonly kind: 'not-held' }
  | { readonly kind: 'stale'; readonly currentToken: bigint }

/** The counter behind the tokens, for restores (INV-04). */
export interface TokenCapability {
  /** Every token issued so far is at most this. */
  highestToken(): Promise<bigint>

  /**
   * Makes every later token exceed `above`. Forward only: a lower `above` changes nothing.
   *
   * @param above a fencing token below the last one, 2^63 − 1
   * @returns what `highestToken` is now
   * @throws TypeError, RangeError when no token would be left to grant (P-28), or it is none
   */
  advanceTokens(above: bigint): Promise<bigint>
}

/** Whether the store can decide, asked of the store itself. */
export interface HealthCapability {
  /**
   * Resolves when the store can decide now.
   *
   * @throws ContentionError, NotLeaderError when it cannot
   */
  checkHealth(): Promise<void>
}

/**
 * How a store keeps time. A lease asked for is rounded up to `granularityMs` and to at least
 * `minTtlMs`; an unrenewed one ends never early and at most `maxLatenessMs` late.
 */
export interface TtlBounds {
  readonly granularityMs: number
  readonly minTtlMs: number
  readonly maxLatenessMs: number
}

/** The lease that a store with these bounds grants when `ttlMs` is asked for; never less. */
export function grantedTtlMs(ttlMs: number, bounds: TtlBounds | undefined): number {
  if (bounds === undefined) return ttlMs
  const whole = Math.ceil(ttlMs / bounds.granularityMs) * bounds.granularityMs
  return Math.max(whole, bounds.minTtlMs)
}
