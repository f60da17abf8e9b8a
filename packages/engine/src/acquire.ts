import {
  type AbortSignalLike,
  ContentionError,
  type LockHandle,
  RetryableLockError,
  type SessionRegistry,
  TerminalLockError,
} from '@dlock/lock-api'
import type { Clock } from '@dlock/system'
import type { Bookkeeping } from './bookkeeping.ts'
import { nanosOf, secondsBetween } from './durations.ts'
import type { Events } from './events.ts'
import type { Granting, LockRequest } from './fencing-token.ts'
import type { Grants } from './grants.ts'
import type { EngineMeter } from './meter.ts'
import type { Sessions } from './sessions.ts'
import type { WaitQueues } from './wait-queues.ts'
import { Waiter } from './waiter.ts'

export interface AcquireOptions {
  readonly registry: SessionRegistry
  readonly clock: Clock
  readonly granting: Granting
  readonly grants: Grants
  readonly bookkeeping: Bookkeeping
  readonly sessions: Sessions
  readonly queues: WaitQueues
  readonly events: Events
  readonly meter: EngineMeter
  readonly abandon: (handle: LockHandle) => Promise<void>
}

/** A call of `acquire` or `tryAcquire`, from its checked arguments to its answer. */
export class Acquire {
  readonly #options: AcquireOptions
  #closed = false

  constructor(options: AcquireOptions) {
    this.#options = options
  }

  /** From now on every call is refused. */
  close(): void {
    this.#closed = true
  }

  /** See `LockService.acquire`; without a wait, `LockService.tryAcquire`. */
  async acquire(
    request: LockRequest,
    maxWaitMs: number,
    signal?: AbortSignalLike,
  ): Promise<LockHandle | undefined> {
    const { clock, meter } = this.#options
    const sinceNanos = clock.monotonicNanos()
    try {
      const handle = await this.#decide(request, sinceNanos, maxWaitMs, signal)
      if (handle === undefined) this.#tellContended(request)
      meter.acquired(
        handle === undefined ? 'contended' : 'granted',
        secondsBetween(sinceNanos, clock.monotonicNanos()),
      )
      return handle
    } catch (error) {
      if (signal?.aborted !== true && !isCallersDoing(error)) {
        meter.acquired('error', secondsBetween(sinceNanos, clock.monotonicNanos()))
      }
      throw error
    }
  }

  async #decide(
    request: LockRequest,
    sinceNanos: bigint,
    maxWaitMs: number,
    signal: AbortSignalLike | undefined,
  ): Promise<LockHandle | undefined> {
    const { sessions, queues } = this.#options
    this.#checkOpen(signal)
    const learning = sessions.checkOwner(request.sessionId, request.ownerId)
    if (learning !== undefined) await learning
    const queue = queues.find(request.key)
    if (maxWaitMs === 0) {
      // Whoever waits goes first, even if the key has become free in this moment.
      return queue?.contended === true && !this.#holdsByBook(request)
        ? this.#refuseUnlessOwn(request, sinceNanos, signal)
        : this.#askOnce(request, sinceNanos, signal)
    }
    if (queue !== undefined && (await this.#mayHold(request))) {
      const handle = await this.#askOnce(request, sinceNanos, signal)
      if (handle !== undefined) return handle
    }
    this.#checkOpen(signal)
    const deadlineNanos = sinceNanos + nanosOf(maxWaitMs)
    const handle = await queues.join(new Waiter({ request, sinceNanos, deadlineNanos, signal }))
    return handle ?? this.#refuseUnlessOwn(request, sinceNanos, signal)
  }

  /**
   * A refusal from the queue says that the key is taken, not by whom. It may be by this very
   * session, with a grant whose answer was lost or that another process made: the store is asked
   * before anybody is told "not yours" (decision 3).
   */
  async #refuseUnlessOwn(
    request: LockRequest,
    sinceNanos: bigint,
    signal: AbortSignalLike | undefined,
  ): Promise<LockHandle | undefined> {
    const held = await this.#options.registry.locksOf(request.sessionId)
    return held.has(request.key) ? this.#askOnce(request, sinceNanos, signal) : undefined
  }

  /** One question to the store, past the queue. */
  async #askOnce(
    request: LockRequest,
    sinceNanos: bigint,
    signal: AbortSignalLike | undefined,
  ): Promise<LockHandle | undefined> {
    const { granting, bookkeeping, queues, abandon } = this.#options
    const handle = await granting.ask(request)
    if (handle === undefined) return undefined
    if (signal?.aborted === true) {
      await abandon(handle)
      throw signal.reason
    }
    bookkeeping.handedOut(handle, request, sinceNanos)
    void queues.find(request.key)?.askAgain(request.sessionId)
    return handle
  }

  /** A session that holds the key already is told so at once, or it would wait for itself. */
  async #mayHold(request: LockRequest): Promise<boolean> {
    const { grants, sessions, registry } = this.#options
    const { key, sessionId } = request
    if (this.#holdsByBook(request)) return true
    if (grants.of(key)?.sessionId !== sessionId && !sessions.isAdopted(sessionId)) return false
    try {
      return (await registry.locksOf(sessionId)).has(key)
    } catch (error) {
      // Then it waits like any other, and is asked for again and again.
      if (error instanceof RetryableLockError) return false
      throw error
    }
  }

  #holdsByBook({ key, sessionId }: LockRequest): boolean {
    const { grants, clock } = this.#options
    const grant = grants.of(key)
    return grant?.sessionId === sessionId && grant.endsAtNanos > clock.monotonicNanos()
  }

  #checkOpen(signal: AbortSignalLike | undefined): void {
    if (this.#closed) throw new ContentionError('the engine is closed')
    signal?.throwIfAborted()
  }

  #tellContended({ key, ownerId }: LockRequest): void {
    const { events, clock } = this.#options
    if (events.heard) events.emit({ type: 'lock_contended', at: clock.now(), key, ownerId })
  }
}

/** Says nothing about the service. */
function isCallersDoing(error: unknown): boolean {
  return (
    error instanceof TerminalLockError || error instanceof RangeError || error instanceof TypeError
  )
}
