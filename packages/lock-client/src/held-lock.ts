import { LockHandle, LockLostError } from '@dlock/lock-api'
import type { Turn } from './acquire-queue.ts'
import type { Lease } from './deadline.ts'

/**
 * One grant, for as long as somebody in this process may ask about it. `held` → `released`, when
 * its holder let go, or `held` → `lost`. Neither is ever left again, so a renewal that was on its
 * way brings nothing back.
 */
export class HeldLock {
  /** Left when the next task of the session may have the key. */
  readonly turn: Turn
  readonly lease: Lease
  /** Asked for, and at each renewal again. */
  readonly ttlMs: number
  /** The end of a maximum hold. */
  readonly holdEndsAt: bigint | undefined
  /** The release that is under way, or was answered. */
  releasing: Promise<boolean> | undefined
  #handle: LockHandle
  #state: 'held' | 'released' | 'lost' = 'held'
  #loss: LockLostError | undefined
  #lost: AbortController | undefined

  constructor(parts: {
    readonly handle: LockHandle
    readonly turn: Turn
    readonly lease: Lease
    readonly ttlMs: number
    readonly holdEndsAt: bigint | undefined
  }) {
    this.#handle = parts.handle
    this.turn = parts.turn
    this.lease = parts.lease
    this.ttlMs = parts.ttlMs
    this.holdEndsAt = parts.holdEndsAt
  }

  /** As last handed out. */
  get handle(): LockHandle {
    return this.#handle
  }

  get state(): 'held' | 'released' | 'lost' {
    return this.#state
  }

  get loss(): LockLostError | undefined {
    return this.#loss
  }

  /** Aborts when the lock is lost, with the loss as its reason. */
  get lost(): AbortSignal {
    if (this.#lost === undefined) {
      this.#lost = new AbortController()
      if (this.#loss !== undefined) this.#lost.abort(this.#loss)
    }
    return this.#lost.signal
  }

  /** The same grant, with the deadline of its last renewal. */
  reissue(clientDeadlineNanos: bigint, serverExpiry: Date): LockHandle {
    const { key, ownerId, sessionId, fencingToken } = this.#handle
    this.#handle = new LockHandle(
      key,
      ownerId,
      sessionId,
      fencingToken,
      clientDeadlineNanos,
      serverExpiry,
    )
    return this.#handle
  }

  /** Its holder let go. @returns whether it was held until now */
  letGo(): boolean {
    if (this.#state !== 'held') return false
    this.#state = 'released'
    return true
  }

  /** It is lost, though nobody is told yet. @returns whether it was held until now */
  lose(why: string): boolean {
    if (this.#state !== 'held') return false
    this.#state = 'lost'
    this.#loss = new LockLostError(this.#handle.key, this.#handle.fencingToken, why)
    return true
  }

  /** Aborts `lost` for whoever asked for it. */
  signalLoss(): void {
    this.#lost?.abort(this.#loss)
  }
}
