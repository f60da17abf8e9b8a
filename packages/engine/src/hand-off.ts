import type { LockHandle, LockStore, TransferCapability } from '@dlock/lock-api'
import type { Clock } from '@dlock/system'
import { secondsBetween } from './durations.ts'
import type { Granting } from './fencing-token.ts'
import type { Grants } from './grants.ts'
import type { EngineMeter } from './meter.ts'
import type { WaitQueue } from './wait-queue.ts'
import type { Waiter } from './waiter.ts'

/** How much sooner than this process the waiters of others may try when it yields. */
const HEAD_START_MS = 5

export interface HandOffOptions {
  readonly store: LockStore
  readonly transfer: TransferCapability | undefined
  readonly clock: Clock
  readonly granting: Granting
  readonly grants: Grants
  readonly meter: EngineMeter
  readonly queueOf: (key: string) => WaitQueue | undefined
  /** Told once the store has said that the grant (key, token) is gone, and whether just now. */
  readonly onGone: (
    key: string,
    fencingToken: bigint,
    released: boolean,
    ownerId: string | undefined,
  ) => void
}

interface Released {
  readonly key: string
  readonly fencingToken: bigint
  /** Whose it is, for the event, when the book does not know; `undefined`: nobody was told of it. */
  readonly ownerId: string | undefined
}

/**
 * What becomes of a key that is let go in this process. With a waiter here, the release and the
 * head's grant are one statement: one flush per hand-off, and no moment in which somebody could
 * slip in. Otherwise the grant is deleted, the store tells the other processes if they want it,
 * and a waiter that joined here meanwhile is told directly.
 *
 * First in, first out holds within a process. Between processes the key goes to whoever asks
 * first, unless the store has a queue for them, which a transfer does not pass by either; so that a busy process does not keep it for ever, every second or so of transfers it
 * deletes instead and gives the others a head start.
 */
export class HandOff {
  readonly #options: HandOffOptions
  readonly #abandoning = new Set<Promise<unknown>>()

  constructor(options: HandOffOptions) {
    this.#options = options
  }

  /**
   * @returns false: the grant is gone already
   * @throws ContentionError, NotLeaderError when it is not known whether it is
   */
  async release(key: string, fencingToken: bigint, ownerId: string | undefined): Promise<boolean> {
    const { meter, clock } = this.#options
    const startNanos = clock.monotonicNanos()
    let outcome: 'released' | 'gone' | 'error' = 'error'
    try {
      const released = await this.#letGo({ key, fencingToken, ownerId })
      outcome = released ? 'released' : 'gone'
      return released
    } finally {
      meter.released(outcome, secondsBetween(startNanos, clock.monotonicNanos()))
    }
  }

  /**
   * Gives back a grant that nobody will get. When the store fails just then, the grant is left to
   * the end of its lease. Never rejects.
   */
  async abandon(handle: LockHandle): Promise<void> {
    const { key, fencingToken, sessionId } = handle
    // Handed out before: the session's own retry came back with it, and it is in use (decision 3).
    if (this.#options.grants.find(key, fencingToken)?.sessionId === sessionId) return
    const letting = this.#letGo({ key, fencingToken, ownerId: undefined }).catch(() => {})
    this.#abandoning.add(letting)
    await letting
    this.#abandoning.delete(letting)
  }

  /** Settles when no grant is on its way back. */
  async drained(): Promise<void> {
    await Promise.all(this.#abandoning)
  }

  #letGo(grant: Released): Promise<boolean> {
    const { transfer, queueOf, granting } = this.#options
    const queue = queueOf(grant.key)
    if (queue?.mustYield() === true) return this.#delete(grant, HEAD_START_MS)
    if (transfer === undefined || granting.stopped) return this.#delete(grant)
    const next = queue?.claimHead()
    if (queue === undefined || next === undefined) return this.#delete(grant)
    return this.#transfer(transfer, grant, queue, next)
  }

  async #delete(grant: Released, headStartMs?: number): Promise<boolean> {
    const { store, onGone, queueOf } = this.#options
    const { key, fencingToken, ownerId } = grant
    const released = await store.deleteIfOwner(key, fencingToken)
    onGone(key, fencingToken, released, ownerId)
    // Whoever joined meanwhile may have been refused on account of this very grant.
    queueOf(key)?.freed(headStartMs)
    return released
  }

  async #transfer(
    transfer: TransferCapability,
    { key, fencingToken, ownerId }: Released,
    queue: WaitQueue,
    next: Waiter,
  ): Promise<boolean> {
    const { granting, clock, meter, onGone } = this.#options
    const startNanos = clock.monotonicNanos()
    try {
      const passed = await granting.pass(transfer, fencingToken, next.request)
      onGone(key, fencingToken, passed.released, ownerId)
      if (passed.granted === undefined) queue.notHandedOn(next, passed.refusal)
      else {
        meter.handedOff(secondsBetween(startNanos, clock.monotonicNanos()))
        await queue.handedOn(next, passed.granted)
      }
      return passed.released
    } catch (error) {
      queue.notHandedOn(next, error)
      throw error
    }
  }
}
