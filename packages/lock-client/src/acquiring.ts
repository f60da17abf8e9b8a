import { LockHandle, SessionDeadError } from '@dlock/lock-api'
import { AbortFanOut } from './abort-fan-out.ts'
import { AcquireCall, type AcquireContext, type Acquired } from './acquire-call.ts'
import type { CheckedAcquire } from './acquire-options.ts'
import { AcquireQueue, type Turn } from './acquire-queue.ts'
import { toMs, toNanos } from './deadline.ts'
import { HeldLock } from './held-lock.ts'
import type { HeldLocks } from './held-locks.ts'

export interface AcquiringParts extends AcquireContext {
  readonly locks: HeldLocks
  readonly onHeld: (lock: HeldLock) => void
  /** The service said so. */
  readonly onSessionDead: (error: SessionDeadError) => void
}

/** How the tasks of a session come to their locks: in line for the key, then by asking. */
export class Acquiring {
  readonly #parts: AcquiringParts
  readonly #queue: AcquireQueue
  readonly #aborts = new AbortFanOut()
  /** Under way: each is given up by its caller's signal, or by the session's end. */
  readonly #calls = new Set<AbortController>()
  #ended: SessionDeadError | undefined

  constructor(parts: AcquiringParts) {
    this.#parts = parts
    this.#queue = new AcquireQueue(parts.clock)
  }

  /** The session is over: gives up what is under way, and refuses whatever comes. */
  end(error: SessionDeadError): void {
    this.#ended = error
    for (const call of this.#calls) call.abort(error)
  }

  /** `undefined`: another had it when the wait was over. */
  async acquire(wanted: CheckedAcquire): Promise<HeldLock | undefined> {
    wanted.signal?.throwIfAborted()
    if (this.#ended !== undefined) throw this.#ended
    const call = new AbortController()
    const unfollow = wanted.signal && this.#aborts.follow(wanted.signal, call)
    this.#calls.add(call)
    try {
      return await this.#take(wanted, call.signal)
    } catch (error) {
      // Given up because the session ended, it has that as its reason.
      const said = error instanceof SessionDeadError && !call.signal.aborted
      if (said) this.#parts.onSessionDead(error)
      throw error
    } finally {
      this.#calls.delete(call)
      unfollow?.()
    }
  }

  async #take(wanted: CheckedAcquire, signal: AbortSignal): Promise<HeldLock | undefined> {
    const { clock } = this.#parts
    const { key, ttlMs, maxWaitMs } = wanted
    const beganAt = clock.monotonicNanos()
    const turn = await this.#queue.enter(key, maxWaitMs, signal)
    if (turn === undefined) return undefined
    let lock: HeldLock | undefined
    try {
      const waitedMs = Math.floor(toMs(clock.monotonicNanos() - beganAt))
      const leftMs = Math.max(maxWaitMs - waitedMs, 0)
      const call = new AcquireCall(this.#parts, { key, ttlMs, maxWaitMs: leftMs, signal })
      const acquired = await call.run()
      if (this.#ended !== undefined) throw this.#ended
      lock = acquired && this.#hold(wanted, turn, acquired)
      return lock
    } finally {
      if (lock === undefined) turn.leave()
    }
  }

  #hold(wanted: CheckedAcquire, turn: Turn, { grant, lease }: Acquired): HeldLock {
    const { session, leaseClock, locks, onHeld } = this.#parts
    const { key, ttlMs, maxHoldMs } = wanted
    const holdEndsAt =
      maxHoldMs === undefined ? undefined : leaseClock.instant() + toNanos(maxHoldMs)
    const handle = new LockHandle(
      key,
      session.ownerId,
      session.sessionId,
      grant.fencingToken,
      leaseClock.toMonotonic(locks.endsAt({ lease, holdEndsAt })),
      grant.serverExpiry,
    )
    const lock = new HeldLock({ handle, turn, lease, ttlMs, holdEndsAt })
    locks.add(lock)
    onHeld(lock)
    return lock
  }
}
