import {
  type AuditedRevocation,
  type LockHandle,
  type LockInfo,
  type LockOutcome,
  type LockService,
  MAX_WAIT_MS,
  SessionDeadError,
  type SessionRegistry,
  type SessionScope,
} from '@dlock/lock-api'
import type { Clock } from '@dlock/system'
import { answerWithin } from './answer-within.ts'
import {
  acquireHop,
  closeSessionHop,
  type Hop,
  inspectHop,
  openSessionHop,
  releaseHop,
  revokeHop,
  timeoutMsOf,
} from './hops.ts'
import type {
  AcquireRequest,
  Grant,
  GrantToRenew,
  HeartbeatAnswer,
  HeartbeatPatience,
  LostGrant,
  OpenedSession,
  RenewedGrant,
  RevokeOutcome,
  Transport,
} from './transport.ts'

/**
 * A service in this process: `LockEngine` of `@dlock/engine`, or anything else that fulfils the two
 * contracts. It stays its owner's: the client never closes it.
 */
export interface LocalService extends SessionRegistry, SessionScope {
  /** The lease granted when `ttlMs` is asked for. Without it, the client counts with `ttlMs`. */
  grantedTtlMs?(ttlMs: number): number
  /** A renewal that is told its length. Without it, one has the length that was granted. */
  renewGrant?(
    sessionId: string,
    key: string,
    fencingToken: bigint,
    ttlMs: number,
  ): Promise<LockHandle | undefined>
  /** A revocation that can refuse when the grant is not the one meant. */
  revoke?(
    key: string,
    operator: string,
    reason: string,
    expectedToken?: bigint,
  ): Promise<AuditedRevocation>
}

/** The two calls that concern no session are made through a binding to none. */
const NO_SESSION = 'none'

export class InProcessTransport implements Transport {
  readonly longestWaitMs: number = MAX_WAIT_MS
  readonly #service: LocalService
  readonly #clock: Clock

  constructor(service: LocalService, clock: Clock) {
    this.#service = service
    this.#clock = clock
  }

  async openSession(ownerId: string, ttlMs: number): Promise<OpenedSession> {
    const opening = this.#service.openSession(ownerId, ttlMs)
    return { sessionId: await this.#within(openSessionHop, opening), ownerId, ttlMs }
  }

  async heartbeat(
    { sessionId, ttlMs }: OpenedSession,
    grants: readonly GrantToRenew[],
    { hop, timeoutMs }: HeartbeatPatience,
  ): Promise<HeartbeatAnswer> {
    const within = <T>(call: Promise<T>): Promise<T> => this.#within(hop, call, timeoutMs)
    // All in one turn, so that a store that coalesces calls makes one statement of them.
    const beating = within(this.#service.heartbeat(sessionId, ttlMs))
    const renewing = grants.map((grant) => within(this.#renew(grant)))
    const [, ...renewals] = await Promise.allSettled([beating, ...renewing])
    if (!(await beating)) throw new SessionDeadError('expired')

    const renewed: RenewedGrant[] = []
    const lost: LostGrant[] = []
    for (const [i, { handle, ttlMs: askedMs }] of grants.entries()) {
      const renewal = renewals[i]
      if (renewal?.status !== 'fulfilled') continue // nothing is known about this one
      const { key, fencingToken } = handle
      if (renewal.value === undefined) lost.push({ key, fencingToken })
      else renewed.push({ key, ...this.#grantOf(renewal.value, askedMs) })
    }
    return { ttlMs, renewed, lost }
  }

  async closeSession({ sessionId }: OpenedSession): Promise<void> {
    await this.#within(closeSessionHop, this.#service.closeSession(sessionId))
  }

  async acquire(
    { sessionId, ownerId }: OpenedSession,
    { key, ttlMs, waitMs, timeoutMs, signal }: AcquireRequest,
  ): Promise<Grant | undefined> {
    const service = this.#service.forSession(sessionId)
    const handle = await answerWithin(service.acquire(key, ownerId, ttlMs, waitMs, signal), {
      clock: this.#clock,
      timeoutMs,
      keepAlive: true,
      giveUp: { signal, graceMs: acquireHop.readMs },
    })
    return handle && this.#grantOf(handle, ttlMs)
  }

  release(handle: LockHandle): Promise<boolean> {
    const releasing = this.#service.forSession(handle.sessionId).release(handle)
    return this.#within(releaseHop, releasing)
  }

  inspect(key: string): Promise<LockInfo | undefined> {
    return this.#within(inspectHop, this.#unbound().inspect(key))
  }

  async revoke(
    key: string,
    operator: string,
    reason: string,
    expectedToken: bigint | undefined,
  ): Promise<RevokeOutcome> {
    if (this.#service.revoke !== undefined) {
      const revoking = this.#service.revoke(key, operator, reason, expectedToken)
      const revocation = await this.#within(revokeHop, revoking)
      if (revocation.kind !== 'revoked') return revocation
      return outcomeOf(revocation.outcome, revocation.revocationId)
    }
    if (expectedToken !== undefined) {
      throw new TypeError('this service cannot revoke on condition of a token: leave it out')
    }
    const revoking = this.#unbound().forceRevoke(key, operator, reason)
    return outcomeOf(await this.#within(revokeHop, revoking), undefined)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #renew({ handle, ttlMs }: GrantToRenew): Promise<LockHandle | undefined> {
    const { sessionId, key, fencingToken } = handle
    if (this.#service.renewGrant === undefined) {
      return this.#service.forSession(sessionId).renew(handle)
    }
    return this.#service.renewGrant(sessionId, key, fencingToken, ttlMs)
  }

  #unbound(): LockService {
    return this.#service.forSession(NO_SESSION)
  }

  #within<T>(hop: Hop, call: Promise<T>, timeoutMs = timeoutMsOf(hop)): Promise<T> {
    return answerWithin(call, {
      clock: this.#clock,
      timeoutMs,
      keepAlive: hop.awaited,
    })
  }

  #grantOf({ fencingToken, serverExpiry }: LockHandle, askedMs: number): Grant {
    const ttlMs = this.#service.grantedTtlMs?.(askedMs) ?? askedMs
    return { fencingToken, ttlMs, serverExpiry }
  }
}

function outcomeOf(outcome: LockOutcome, revocationId: string | undefined): RevokeOutcome {
  const { previousToken, newTokenFloor } = outcome
  if (previousToken === undefined || newTokenFloor === undefined) return { kind: 'not-held' }
  return { kind: 'revoked', previousToken, newTokenFloor, revocationId }
}
