import type { AbortSignalLike, LockHandle, LockInfo } from '@dlock/lock-api'
import type { Hop } from './hops.ts'

/**
 * How the client's calls reach a service: in this process, over HTTP, or over one multiplexed
 * connection. Errors are the contract's. What could not be sent, or got no answer in the time of
 * its hop (`hops.ts`), is a `ContentionError`: the call may or may not have happened. No call is
 * ever made twice in here.
 */
export interface Transport {
  /** The longest wait of one acquire; whoever wants to wait longer asks again. */
  readonly longestWaitMs: number

  openSession(ownerId: string, ttlMs: number): Promise<OpenedSession>

  /**
   * Prolongs the session and these grants, in one request as far as it holds them.
   *
   * @throws SessionDeadError when the session is dead, and every grant of it
   */
  heartbeat(
    session: OpenedSession,
    grants: readonly GrantToRenew[],
    patience: HeartbeatPatience,
  ): Promise<HeartbeatAnswer>

  closeSession(session: OpenedSession): Promise<void>

  /**
   * Once the request's `signal` aborts there are four answers: a grant all the same, which is the caller's to
   * release; `undefined`, or the signal's reason as error: no grant was left behind; any other
   * error: a grant may have been.
   *
   * @throws SessionDeadError when the session is dead
   */
  acquire(session: OpenedSession, request: AcquireRequest): Promise<Grant | undefined>

  /** `false`: gone already. */
  release(handle: LockHandle): Promise<boolean>

  inspect(key: string): Promise<LockInfo | undefined>

  revoke(
    key: string,
    operator: string,
    reason: string,
    expectedToken: bigint | undefined,
  ): Promise<RevokeOutcome>

  /** Idempotent and bounded. Leaves the service alone. */
  close(): Promise<void>
}

export interface OpenedSession {
  readonly sessionId: string
  readonly ownerId: string
  /** Granted; what the client counts with. */
  readonly ttlMs: number
}

export interface AcquireRequest {
  readonly key: string
  readonly ttlMs: number
  /** 0 … `longestWaitMs`. */
  readonly waitMs: number
  /** For the answer, the wait included. */
  readonly timeoutMs: number
  readonly signal: AbortSignalLike
}

/** The answer to a successful acquire, before a deadline makes a `LockHandle` of it. */
export interface Grant {
  readonly fencingToken: bigint
  /** Granted; may be more than was asked for. */
  readonly ttlMs: number
  /** For people. */
  readonly serverExpiry: Date
}

export interface GrantToRenew {
  readonly handle: LockHandle
  readonly ttlMs: number
}

export interface HeartbeatPatience {
  readonly hop: Hop
  /** For the answer, all in all. */
  readonly timeoutMs: number
}

/** A grant in neither list is one that nothing is known about. */
export interface HeartbeatAnswer {
  /** Of the session, granted. */
  readonly ttlMs: number
  readonly renewed: readonly RenewedGrant[]
  /** Now, terminal. */
  readonly lost: readonly LostGrant[]
}

export interface RenewedGrant extends Grant {
  readonly key: string
}

export interface LostGrant {
  readonly key: string
  readonly fencingToken: bigint
}

/**
 * What a forced revocation did. `stale`: the key's grant is not the one that was meant, and nothing
 * was done.
 *
 * `newTokenFloor` fences nobody by itself: a resource that has seen no higher token still accepts
 * the displaced holder's. Push it to the guards' `advance(resource, floor)` (decision 5).
 */
export type RevokeOutcome =
  | {
      readonly kind: 'revoked'
      readonly previousToken: bigint
      readonly newTokenFloor: bigint
      /** Names the audit record; `undefined` when the service does not say. */
      readonly revocationId: string | undefined
    }
  | { readonly kind: 'not-held' }
  | { readonly kind: 'stale'; readonly currentToken: bigint }
