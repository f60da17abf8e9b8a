import {
  type AbortSignalLike,
  ContentionError,
  LockHandle,
  RetryableLockError,
  SessionDeadError,
} from '@dlock/lock-api'
import { backoffMs, type Pacing, pause } from './backoff.ts'
import { Lease, type LeaseClock, toMs, toNanos } from './deadline.ts'
import type { SpentTokens } from './fencing-token.ts'
import { acquireHop, renewHop, timeoutMsOf } from './hops.ts'
import type { Grant, OpenedSession, Transport } from './transport.ts'

/** What one acquire needs to know of its session. */
export interface AcquireContext extends Pacing {
  readonly transport: Transport
  readonly session: OpenedSession
  readonly leaseClock: LeaseClock
  readonly safetyMargin: number
  readonly spent: SpentTokens
}

export interface Wanted {
  readonly key: string
  readonly ttlMs: number
  readonly maxWaitMs: number
  /** Aborts for the caller, and for the end of the session. */
  readonly signal: AbortSignalLike
}

/** A grant, and the lease that is counted for it. */
export interface Acquired {
  readonly grant: Grant
  readonly lease: Lease
}

/**
 * One acquire: as many requests as it takes, under one deadline.
 *
 * An answer that did not come leaves the outcome unknown. Asking again resolves it, since the
 * session gets the same grant again; so every retryable failure is followed by another try while
 * there is time, and an abort by one last request that asks and releases (`#giveUp`). What is left
 * when that fails too, or when the time is over, is at worst a grant that nobody renews: it ends
 * with its own lease, or with the next acquire of this session, which adopts it.
 */
export class AcquireCall {
  readonly #context: AcquireContext
  readonly #wanted: Wanted
  readonly #waitEndsAt: bigint
  readonly #callEndsAt: bigint
  #failures = 0
  /** A request went out that may have left a grant behind. */
  #unsure = false

  constructor(context: AcquireContext, wanted: Wanted) {
    this.#context = context
    this.#wanted = wanted
    this.#waitEndsAt = context.clock.monotonicNanos() + toNanos(wanted.maxWaitMs)
    this.#callEndsAt = this.#waitEndsAt + toNanos(timeoutMsOf(acquireHop))
  }

  /** `undefined`: another had it when the wait was over. */
  async run(): Promise<Acquired | undefined> {
    const { signal } = this.#wanted
    for (;;) {
      try {
        signal.throwIfAborted()
        const answer = await this.#ask()
        if (answer === 'again') continue
        if (signal.aborted) {
          if (answer !== undefined) await this.#release(answer.grant)
          this.#unsure = false
          throw signal.reason
        }
        return answer
      } catch (error) {
        if (signal.aborted) {
          await this.#giveUp(error)
          throw signal.reason
        }
        await this.#backOff(error)
      }
    }
  }

  async #ask(): Promise<Acquired | undefined | 'again'> {
    const { transport, session, leaseClock, spent } = this.#context
    const { key, ttlMs, signal } = this.#wanted
    const waitMs = Math.min(this.#waitLeftMs(), transport.longestWaitMs)
    const timeoutMs = Math.min(waitMs + timeoutMsOf(acquireHop), this.#leftMs(this.#callEndsAt))
    const sentAt = leaseClock.instant()
    const grant = await transport.acquire(session, { key, ttlMs, waitMs, timeoutMs, signal })
    if (grant === undefined) return this.#refused(waitMs, sentAt)
    if (spent.has(key, grant.fencingToken)) {
      await this.#release(grant)
      spent.forget(key)
      return 'again'
    }
    spent.forget(key)
    return this.#granted(grant, sentAt)
  }

  /**
   * A definite answer: not now. It forgets no spent token: a replica that puts others first refuses
   * without asking the store, and the spent grant, made by another replica, may be there still.
   */
  async #refused(waitMs: number, sentAt: bigint): Promise<undefined | 'again'> {
    const { random, leaseClock } = this.#context
    this.#unsure = false
    this.#failures = 0
    if (this.#waitLeftMs() === 0) return undefined
    // A service that refuses before the wait is over is not asked again in a tight loop.
    const early = leaseClock.instant() < sentAt + toNanos(waitMs)
    if (early) await this.#pause(Math.min(backoffMs(random, 0), this.#waitLeftMs()))
    return 'again'
  }

  /**
   * The lease counts from when the request left, and the service may have kept it waiting since: a
   * lease that is due to be renewed is renewed before it is handed out. Without that, a wait
   * longer than the lease would hand out locks that are lost already.
   */
  async #granted(grant: Grant, sentAt: bigint): Promise<Acquired | 'again'> {
    const { leaseClock, safetyMargin } = this.#context
    const lease = new Lease(sentAt, grant.ttlMs, safetyMargin)
    if (leaseClock.notice() < lease.renewAt) return { grant, lease }
    this.#unsure = true
    const renewed = await this.#renew(grant, lease)
    if (renewed && leaseClock.notice() < lease.endsAt) return { grant, lease }
    if (this.#waitLeftMs() > 0) return 'again'
    if (renewed) await this.#release(grant)
    throw new ContentionError(
      `the lock was granted, but a lease of ${grant.ttlMs} ms is over before its answer is here`,
    )
  }

  /** @returns `false` when the grant is gone */
  async #renew(grant: Grant, lease: Lease): Promise<boolean> {
    const { transport, session, leaseClock } = this.#context
    const renewal = { handle: this.#handleOf(grant), ttlMs: this.#wanted.ttlMs }
    const patience = { hop: renewHop, timeoutMs: timeoutMsOf(renewHop) }
    const sentAt = leaseClock.instant()
    const { renewed, lost } = await transport.heartbeat(session, [renewal], patience)
    if (lost.length > 0) return false
    const [answer] = renewed
    if (answer === undefined) throw new ContentionError('nobody knows whether it was renewed')
    lease.prolong(sentAt, answer.ttlMs)
    return true
  }

  /** Waits before the next try, or throws `error` when there is to be none. */
  async #backOff(error: unknown): Promise<void> {
    if (!(error instanceof RetryableLockError)) throw error
    this.#unsure = true
    const { random } = this.#context
    const delayMs = backoffMs(random, this.#failures, error)
    if (this.#failures++ === acquireHop.retries) throw error
    if (delayMs >= this.#leftMs(this.#callEndsAt)) throw error
    await this.#pause(delayMs)
  }

  /** Given up. With the outcome unknown: asks once more, without waiting, and releases. */
  async #giveUp(error: unknown): Promise<void> {
    const { transport, session } = this.#context
    const { key, ttlMs, signal } = this.#wanted
    if (error !== signal.reason) this.#unsure = true
    if (!this.#unsure) return
    // The end of the session releases whatever is left.
    if (signal.reason instanceof SessionDeadError) return
    try {
      const timeoutMs = timeoutMsOf(acquireHop)
      // Nobody aborts it. Not one signal for all: listeners of many calls on one look like a leak.
      const unaborted = new AbortController().signal
      const call = { key, ttlMs, waitMs: 0, timeoutMs, signal: unaborted }
      const grant = await transport.acquire(session, call)
      if (grant !== undefined) await this.#release(grant)
    } catch {
      // Nothing more can be learnt now. The grant, if there is one, is renewed by nobody.
    }
  }

  async #release(grant: Grant): Promise<void> {
    await this.#context.transport.release(this.#handleOf(grant))
  }

  #handleOf(grant: Grant): LockHandle {
    const { sessionId, ownerId } = this.#context.session
    const { fencingToken, serverExpiry } = grant
    return new LockHandle(this.#wanted.key, ownerId, sessionId, fencingToken, 0n, serverExpiry)
  }

  /** An abort ends it early, and is seen by who waited. */
  async #pause(ms: number): Promise<void> {
    const { signal } = this.#wanted
    await pause(this.#context.clock, ms, { signal, keepAlive: true }).catch(() => {})
  }

  #waitLeftMs(): number {
    return this.#leftMs(this.#waitEndsAt)
  }

  #leftMs(instant: bigint): number {
    return Math.max(Math.ceil(toMs(instant - this.#context.clock.monotonicNanos())), 0)
  }
}
