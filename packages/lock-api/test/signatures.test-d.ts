import type {
  AbortSignalLike,
  AuditCapability,
  AuditedRevocation,
  CapableStore,
  HealthCapability,
  ListingCapability,
  LockInfo,
  LockOutcome,
  LockQuery,
  LockService,
  LockStore,
  NextHolder,
  Page,
  PageQuery,
  QueueCapability,
  Revocation,
  SessionCapability,
  SessionInfo,
  SessionRegistry,
  SessionScope,
  SessionState,
  StoreCapabilities,
  TokenCapability,
  Transfer,
  TransferCapability,
  TtlBounds,
  Unsubscribe,
  WaitingCapability,
} from '@dlock/lock-api'
import {
  type ContentionError,
  type FencedOutError,
  LockHandle,
  type LockLostError,
  type NotLeaderError,
  type RetryableLockError,
  type SessionDeadError,
  type TerminalLockError,
} from '@dlock/lock-api'
import { expectTypeOf } from 'vitest'

/** Pins every signature of the contract. Compiled by `tsc -b`; there is nothing to run. */

expectTypeOf<keyof LockService>().toEqualTypeOf<
  'acquire' | 'tryAcquire' | 'renew' | 'release' | 'inspect' | 'forceRevoke'
>()
expectTypeOf<LockService['acquire']>().toEqualTypeOf<
  (
    key: string,
    ownerId: string,
    ttlMs: number,
    maxWaitMs: number,
    signal?: AbortSignalLike,
  ) => Promise<LockHandle | undefined>
>()
expectTypeOf<LockService['tryAcquire']>().toEqualTypeOf<
  (key: string, ownerId: string, ttlMs: number) => Promise<LockHandle | undefined>
>()
expectTypeOf<LockService['renew']>().toEqualTypeOf<
  (handle: LockHandle) => Promise<LockHandle | undefined>
>()
expectTypeOf<LockService['release']>().toEqualTypeOf<(handle: LockHandle) => Promise<boolean>>()
expectTypeOf<LockService['inspect']>().toEqualTypeOf<
  (key: string) => Promise<LockInfo | undefined>
>()
expectTypeOf<LockService['forceRevoke']>().toEqualTypeOf<
  (key: string, operator: string, reason: string) => Promise<LockOutcome>
>()
expectTypeOf<SessionScope>().toEqualTypeOf<{ forSession(sessionId: string): LockService }>()

expectTypeOf<keyof LockStore>().toEqualTypeOf<
  'tryInsert' | 'extend' | 'deleteIfOwner' | 'read' | 'revoke' | 'reapExpired' | 'backendId'
>()
expectTypeOf<LockStore['tryInsert']>().toEqualTypeOf<
  (
    key: string,
    ownerId: string,
    sessionId: string,
    ttlMs: number,
  ) => Promise<LockHandle | undefined>
>()
expectTypeOf<LockStore['extend']>().toEqualTypeOf<
  (key: string, fencingToken: bigint, ttlMs: number) => Promise<LockHandle | undefined>
>()
expectTypeOf<LockStore['deleteIfOwner']>().toEqualTypeOf<
  (key: string, fencingToken: bigint) => Promise<boolean>
>()
expectTypeOf<LockStore['read']>().toEqualTypeOf<(key: string) => Promise<LockInfo | undefined>>()
expectTypeOf<LockStore['revoke']>().toEqualTypeOf<
  (key: string, operator: string, reason: string) => Promise<LockOutcome>
>()
expectTypeOf<LockStore['reapExpired']>().toEqualTypeOf<(now: Date) => Promise<number>>()
expectTypeOf<LockStore['backendId']>().toEqualTypeOf<() => string>()

expectTypeOf<keyof SessionRegistry>().toEqualTypeOf<
  'openSession' | 'heartbeat' | 'closeSession' | 'locksOf'
>()
expectTypeOf<SessionRegistry['openSession']>().toEqualTypeOf<
  (ownerId: string, ttlMs: number) => Promise<string>
>()
expectTypeOf<SessionRegistry['heartbeat']>().toEqualTypeOf<
  (sessionId: string, ttlMs: number) => Promise<boolean>
>()
expectTypeOf<SessionRegistry['closeSession']>().toEqualTypeOf<
  (sessionId: string) => Promise<number>
>()
expectTypeOf<SessionRegistry['locksOf']>().toEqualTypeOf<
  (sessionId: string) => Promise<ReadonlySet<string>>
>()

// Capabilities: optional, apart from one another, and found by one call.
expectTypeOf<CapableStore>().toEqualTypeOf<{ capabilities(): StoreCapabilities }>()
expectTypeOf<StoreCapabilities>().toEqualTypeOf<{
  readonly waiting?: WaitingCapability
  readonly queue?: QueueCapability
  readonly transfer?: TransferCapability
  readonly sessions?: SessionCapability
  readonly listing?: ListingCapability
  readonly audit?: AuditCapability
  readonly tokens?: TokenCapability
  readonly health?: HealthCapability
  readonly ttlBounds?: TtlBounds
}>()
expectTypeOf<WaitingCapability>().toEqualTypeOf<{
  want(key: string): Promise<number | undefined>
  subscribe(onFreed: (key: string) => void, onGap: () => void): Promise<Unsubscribe>
}>()
expectTypeOf<QueueCapability>().toEqualTypeOf<{
  join(key: string): Promise<void>
  leave(key: string): Promise<void>
}>()
expectTypeOf<Unsubscribe>().toEqualTypeOf<() => Promise<void>>()
expectTypeOf<TransferCapability>().toEqualTypeOf<{
  transfer(key: string, fencingToken: bigint, next: NextHolder): Promise<Transfer>
}>()
expectTypeOf<NextHolder>().toEqualTypeOf<{
  readonly ownerId: string
  readonly sessionId: string
  readonly ttlMs: number
}>()
expectTypeOf<Transfer>().toEqualTypeOf<{
  readonly released: boolean
  readonly granted: LockHandle | undefined
  readonly passedOver?: true
}>()
expectTypeOf<SessionCapability>().toEqualTypeOf<{
  describeSession(sessionId: string): Promise<SessionState>
}>()
expectTypeOf<SessionState>().toEqualTypeOf<
  | { readonly state: 'live'; readonly ownerId: string; readonly remainingMs: number }
  | { readonly state: 'expired' | 'unknown' }
>()
expectTypeOf<ListingCapability>().toEqualTypeOf<{
  listLocks(query: LockQuery): Promise<Page<LockInfo>>
  listSessions(query: PageQuery): Promise<Page<SessionInfo>>
  listRevocations(query: PageQuery): Promise<Page<Revocation>>
}>()
expectTypeOf<PageQuery['cursor']>().toEqualTypeOf<string | undefined>()
expectTypeOf<PageQuery['limit']>().toEqualTypeOf<number>()
expectTypeOf<LockQuery>().toExtend<PageQuery>()
expectTypeOf<LockQuery['prefix']>().toEqualTypeOf<string>()
expectTypeOf<Page<LockInfo>>().toEqualTypeOf<{
  readonly items: readonly LockInfo[]
  readonly nextCursor: string | undefined
}>()
expectTypeOf<SessionInfo>().toEqualTypeOf<{
  readonly sessionRef: string
  readonly ownerId: string
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly heldLockCount: number
}>()
expectTypeOf<Revocation>().toEqualTypeOf<{
  readonly revocationId: string
  readonly key: string
  readonly previousOwnerId: string
  readonly previousToken: bigint
  readonly newTokenFloor: bigint
  readonly operator: string
  readonly reason: string
  readonly revokedAt: Date
}>()
expectTypeOf<AuditCapability>().toEqualTypeOf<{
  revokeExpecting(
    key: string,
    operator: string,
    reason: string,
    expectedToken: bigint | undefined,
  ): Promise<AuditedRevocation>
}>()
expectTypeOf<AuditedRevocation>().toEqualTypeOf<
  | { readonly kind: 'revoked'; readonly outcome: LockOutcome; readonly revocationId: string }
  | { readonly kind: 'not-held' }
  | { readonly kind: 'stale'; readonly currentToken: bigint }
>()
expectTypeOf<TokenCapability>().toEqualTypeOf<{
  highestToken(): Promise<bigint>
  advanceTokens(above: bigint): Promise<bigint>
}>()
expectTypeOf<HealthCapability>().toEqualTypeOf<{ checkHealth(): Promise<void> }>()
expectTypeOf<TtlBounds>().toEqualTypeOf<{
  readonly granularityMs: number
  readonly minTtlMs: number
  readonly maxLatenessMs: number
}>()

// The records: the contract's components, in the contract's order.
expectTypeOf<ConstructorParameters<typeof LockHandle>>().toEqualTypeOf<
  [
    key: string,
    ownerId: string,
    sessionId: string,
    fencingToken: bigint,
    clientDeadlineNanos: bigint,
    serverExpiry: Date,
  ]
>()
expectTypeOf<ConstructorParameters<typeof LockInfo>>().toEqualTypeOf<
  [
    key: string,
    ownerId: string,
    fencingToken: bigint,
    acquiredAt: Date,
    expiresAt: Date,
    waiterCount: number,
  ]
>()
expectTypeOf<ConstructorParameters<typeof LockOutcome>>().toEqualTypeOf<
  [
    key: string,
    revoked: boolean,
    previousOwnerId: string | undefined,
    previousToken: bigint | undefined,
    newTokenFloor: bigint | undefined,
  ]
>()

// A look-alike is not a handle: only what a service made authorises anything.
const lookAlike = {
  key: 'job',
  ownerId: 'worker',
  sessionId: 'session',
  fencingToken: 1n,
  clientDeadlineNanos: 1n,
  serverExpiry: new Date(0),
  equals: () => true,
  withClientDeadline: (): never => {
    throw new Error('a forgery')
  },
}
// @ts-expect-error: an object of the same shape is not a LockHandle
export const forged: LockHandle = lookAlike
export function aServiceTakesNoLookAlike(locks: LockService): void {
  // @ts-expect-error: nor does a service take it for one
  void locks.release(lookAlike)
}

export function aHandleIsImmutable(handle: LockHandle): void {
  // @ts-expect-error: read-only
  handle.fencingToken = 2n
  // @ts-expect-error: read-only
  handle.serverExpiry = new Date(0)
}

// A token is a bigint; a number, which rounds above 2^53, does not compile.
export function aTokenIsNoNumber(store: LockStore, handle: LockHandle): void {
  // @ts-expect-error: not a bigint
  void store.extend('job', 1, 1_000)
  // @ts-expect-error: not a number
  const rounded: number = handle.fencingToken
  void rounded
}

// The retry verdict is a type.
expectTypeOf<ContentionError>().toExtend<RetryableLockError>()
expectTypeOf<NotLeaderError>().toExtend<RetryableLockError>()
expectTypeOf<LockLostError>().toExtend<TerminalLockError>()
expectTypeOf<FencedOutError>().toExtend<TerminalLockError>()
expectTypeOf<SessionDeadError>().toExtend<TerminalLockError>()
expectTypeOf<FencedOutError['presentedToken']>().toEqualTypeOf<bigint>()
expectTypeOf<FencedOutError['storedToken']>().toEqualTypeOf<bigint>()

// Every real signal fits the shape that the contract names.
expectTypeOf<AbortSignal>().toExtend<AbortSignalLike>()
