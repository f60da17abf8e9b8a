/**
 * Life of a fencing token, step 3 of 8: is granted (engine).
 *
 * The store has minted the token and recorded the grant. Before anybody may use it the engine
 * compares it with what it has handed out before (`TokenGuard`), and gives the handle its
 * deadline: when the request was **sent**, plus the lease that was granted, less the safety margin
 * (FR-11). An answer that comes after its own deadline is a grant that nobody can use any more. A
 * token that passes is handed to exactly one waiting call, or its grant is released: there is no
 * third way out of this file. Next it is spelled (protocol).
 */
import {
  ContentionError,
  type LockHandle,
  type LockStore,
  type NextHolder,
  SessionDeadError,
  type TransferCapability,
} from '@dlock/lock-api'
import type { Clock } from '@dlock/system'
import type { TokenGuard, TokenMark } from './token-guard.ts'

/** What is asked for when a key is asked for. */
export interface LockRequest extends NextHolder {
  readonly key: string
}

/** A transfer's outcome: `granted` is fit to be handed out, `refusal` says why there is none. */
export interface Passed {
  readonly released: boolean
  readonly granted?: LockHandle
  readonly refusal?: unknown
}

export interface GrantingOptions {
  readonly store: LockStore
  readonly clock: Clock
  readonly guard: TokenGuard
  readonly deadlineNanos: (sentNanos: bigint, ttlMs: number) => bigint
  /** Told of every session that the store calls dead. */
  readonly onSessionDead: (sessionId: string, error: SessionDeadError) => void
  /** Releases a grant that must not be handed out. Never rejects. */
  readonly abandon: (handle: LockHandle) => Promise<void>
}

/** Asks the store for grants, and lets through only those that may be handed out. */
export class Granting {
  readonly #options: GrantingOptions

  constructor(options: GrantingOptions) {
    this.#options = options
  }

  /** True once the store's tokens went backwards: nothing is granted any more. */
  get stopped(): boolean {
    return this.#options.guard.stopped !== undefined
  }

  /**
   * One attempt, one round trip.
   *
   * @returns `undefined`: held by another live grant
   * @throws ContentionError when nothing was decided, or the grant came too late to be of use
   * @throws NotLeaderError also once the store's tokens went backwards
   * @throws SessionDeadError when the session is not alive
   */
  async ask(request: LockRequest): Promise<LockHandle | undefined> {
    const { store, clock, guard } = this.#options
    if (guard.stopped !== undefined) throw guard.stopped
    const mark = guard.mark(request.key)
    const sentNanos = clock.monotonicNanos()
    let handle: LockHandle | undefined
    try {
      handle = await store.tryInsert(request.key, request.ownerId, request.sessionId, request.ttlMs)
    } catch (error) {
      if (error instanceof SessionDeadError) {
        this.#options.onSessionDead(request.sessionId, error)
      }
      throw error
    }
    if (handle === undefined) return undefined
    return guard.accepts(mark, handle)
      ? this.#admit(handle, sentNanos, request.ttlMs)
      : this.#confirm(handle, sentNanos, request.ttlMs, mark)
  }

  /** Releases (key, token) and grants the key to `next` in one step. Throws as the store does. */
  async pass(
    transfer: TransferCapability,
    fencingToken: bigint,
    next: LockRequest,
  ): Promise<Passed> {
    const { clock, guard } = this.#options
    const mark = guard.mark(next.key)
    const sentNanos = clock.monotonicNanos()
    const { released, granted, passedOver } = await transfer.transfer(next.key, fencingToken, next)
    if (granted === undefined) {
      // Too late, or another process is before this one: nothing against the waiter itself.
      if (!released || passedOver === true) return { released }
      const refusal = new SessionDeadError('expired')
      this.#options.onSessionDead(next.sessionId, refusal)
      return { released, refusal }
    }
    try {
      const handle = guard.accepts(mark, granted)
        ? await this.#admit(granted, sentNanos, next.ttlMs)
        : await this.#confirm(granted, sentNanos, next.ttlMs, mark)
      return { released, granted: handle }
    } catch (refusal) {
      return { released, refusal }
    }
  }

  async #confirm(
    handle: LockHandle,
    sentNanos: bigint,
    ttlMs: number,
    mark: TokenMark,
  ): Promise<LockHandle> {
    try {
      await this.#options.guard.confirm(mark, handle)
    } catch (error) {
      await this.#options.abandon(handle)
      throw error
    }
    return this.#admit(handle, sentNanos, ttlMs)
  }

  #admit(handle: LockHandle, sentNanos: bigint, ttlMs: number): LockHandle | Promise<never> {
    const { clock, guard, deadlineNanos } = this.#options
    const deadline = deadlineNanos(sentNanos, ttlMs)
    if (!guard.remember(handle)) return this.#tooLate(handle, 'a later grant was made meanwhile')
    if (clock.monotonicNanos() >= deadline) {
      return this.#tooLate(handle, 'its answer came after its own deadline')
    }
    return handle.withClientDeadline(deadline)
  }

  async #tooLate(handle: LockHandle, why: string): Promise<never> {
    await this.#options.abandon(handle)
    throw new ContentionError(`the grant was of no use any more: ${why}`)
  }
}
