import {
  ContentionError,
  type LockHandle,
  type QueueCapability,
  RetryableLockError,
  type WaitingCapability,
} from '@dlock/lock-api'
import type { Random } from '@dlock/system'
import { jitteredMs, secondsBetween } from './durations.ts'
import type { Granting } from './fencing-token.ts'
import type { EngineMeter } from './meter.ts'
import { Nap } from './nap.ts'
import { Outlook } from './outlook.ts'
import type { Alarms, Waiter } from './waiter.ts'

/** Added to a lease's end, which the store may round down to whole milliseconds. */
const SLACK_MS = 2

export interface WaitQueueOptions {
  readonly granting: Granting
  readonly alarms: Alarms
  readonly random: Random
  readonly meter: EngineMeter
  readonly waiting: WaitingCapability | undefined
  /** Where processes stand in line for a key, if the store can order them. */
  readonly line: QueueCapability | undefined
  readonly fallbackPollMs: number
  readonly maxLatenessMs: number
  /** Writes the grant down and tells the listeners; the last thing before a caller gets it. */
  readonly handOut: (handle: LockHandle, waiter: Waiter) => void
  /** Releases a grant that must not be handed out. Never rejects. */
  readonly abandon: (handle: LockHandle) => Promise<void>
}

/**
 * The calls of this process that want one key, first in, first out.
 *
 * One loop (`#drive`) serves the head, and only the head talks to the store. It **asks** for the
 * key when that may be free; else it **looks** when the lease ends, which also marks the grant as
 * wanted; then it **sleeps** until the key is announced as free, the lease ends, or the fallback
 * poll is due. Meanwhile a release in this process may hand the key to the head directly (see
 * `hand-off.ts`), which leaves the loop asleep.
 *
 * No release is missed: `maybeFree` is lowered before the store is asked, so that one announced
 * from then on raises it again; one that came before the grant was marked as wanted shows in the
 * answer of `want`.
 */
export class WaitQueue {
  readonly key: string
  readonly #options: WaitQueueOptions
  readonly #onEmpty: () => void
  readonly #waiters = new Set<Waiter>()
  readonly #outlook: Outlook
  readonly #nap: Nap
  #driving: Promise<void> | undefined
  #claimEnded: (() => void) | undefined
  /** Timed out before the store's first word: that word is on its way, and is theirs as well. */
  readonly #undecided: Waiter[] = []
  /** The shortest lease handed on while the loop was asking for the end of an earlier one. */
  #handedOnMs = Number.POSITIVE_INFINITY

  constructor(key: string, options: WaitQueueOptions, onEmpty: () => void) {
    this.key = key
    this.#options = options
    this.#onEmpty = onEmpty
    this.#outlook = new Outlook(options.alarms.clock, options.random)
    this.#nap = new Nap(options.alarms.clock)
  }

  /** Calls in the queue, a first attempt on its way included. */
  get size(): number {
    return this.#waiters.size
  }

  /** Calls that wait: those whose first attempt did not settle them. */
  get waiting(): number {
    let waiting = 0
    for (const waiter of this.#waiters) if (waiter.armed) waiting += 1
    return waiting
  }

  /** The store called the key held, and somebody waits: a newcomer must not overtake. */
  get contended(): boolean {
    return this.size > 0 && this.#outlook.held
  }

  /** Settles when nobody waits any more and no call to the store is in flight. */
  drained(): Promise<void> {
    return this.#driving ?? Promise.resolve()
  }

  join(waiter: Waiter): Promise<LockHandle | undefined> {
    this.#waiters.add(waiter)
    // The first of a key is most often granted at once: its alarms are armed only if it is not.
    if (this.#driving === undefined) this.#driving = this.#drive()
    else this.#arm(waiter)
    return waiter.outcome
  }

  /** The key may be free: the head asks, after `headStartMs` in which other processes may. */
  freed(headStartMs = 0): void {
    this.#outlook.freed(headStartMs)
    this.#nap.wake()
  }

  /** Every waiting call fails with `error`; one whose attempt is in flight, when that is back. */
  refuseAll(error: unknown): void {
    for (const waiter of this.#waiters) waiter.end({ error })
  }

  /**
   * The session was granted the key: its other calls here are answered with the same grant, or they
   * would wait for themselves. Never rejects.
   */
  async askAgain(sessionId: string): Promise<void> {
    for (const waiter of this.#waiters) {
      const waits = !waiter.claimed && waiter.ending === undefined
      if (waits && waiter.request.sessionId === sessionId) await this.#ask(waiter)
    }
  }

  /** See `Outlook.mustYield`. */
  mustYield(): boolean {
    return this.size > 0 && this.#outlook.mustYield()
  }

  /** The head, claimed for a transfer; `undefined` when there is none or its turn is running. */
  claimHead(): Waiter | undefined {
    const head = this.#head()
    if (head === undefined || head.claimed || head.ending !== undefined) return undefined
    head.claimed = true
    return head
  }

  /** A transfer granted the key to the waiter that `claimHead` had returned. */
  async handedOn(waiter: Waiter, handle: LockHandle): Promise<void> {
    const { ttlMs } = waiter.request
    this.#handedOnMs = Math.min(this.#handedOnMs, ttlMs)
    this.#nap.wakeUnlessWithin(this.#untilEnd(ttlMs))
    await this.#give(waiter, handle)
  }

  /** A transfer did not: the release came too late, failed, or `waiter` may not have the key. */
  notHandedOn(waiter: Waiter, error: unknown): void {
    if (error === undefined) this.#stay(waiter)
    else this.#failed(waiter, error)
    this.freed()
  }

  async #drive(): Promise<void> {
    for (let head = this.#head(); head !== undefined; head = this.#head()) {
      if (head.claimed) await this.#claimEnd()
      else if (this.#outlook.pauseMs > 0) await this.#nap.sleep(this.#outlook.pauseMs)
      else if (this.#outlook.maybeFree) await this.#ask(head)
      else await this.#look(head)
    }
    this.#driving = undefined
    void this.#options.line?.leave(this.key)
    this.#onEmpty()
  }

  /** Asks the store for the key on behalf of `waiter`, and settles it if that settles it. */
  async #ask(waiter: Waiter): Promise<void> {
    const { granting, meter, alarms } = this.#options
    const isHead = waiter === this.#head()
    if (isHead) this.#outlook.asking()
    waiter.claimed = true
    waiter.unsettled = false
    try {
      const handle = await granting.ask(waiter.request)
      waiter.look(alarms.clock.monotonicNanos())
      if (handle === undefined) {
        this.#outlook.refused()
        this.#decided()
        this.#stay(waiter)
        return
      }
      const freedAt = isHead ? this.#outlook.takeFreedAt() : undefined
      await this.#give(waiter, handle)
      if (freedAt !== undefined) {
        meter.handedOff(secondsBetween(freedAt, alarms.clock.monotonicNanos()))
      }
    } catch (error) {
      waiter.look(alarms.clock.monotonicNanos())
      this.#failed(waiter, error)
    }
  }

  /** Learns when the lease ends, marks it as wanted, and sleeps until something may have changed. */
  async #look(head: Waiter): Promise<void> {
    const { waiting, line, fallbackPollMs, random } = this.#options
    const pollMs = jitteredMs(random, fallbackPollMs)
    if (waiting === undefined) {
      const woken = await this.#nap.sleep(pollMs)
      if (!woken) this.#outlook.mayBeFree()
      return
    }
    this.#handedOnMs = Number.POSITIVE_INFINITY
    let remainingMs: number | undefined
    try {
      // The place is this process's, for whoever is its head; a grant uses it up.
      await line?.join(this.key)
      remainingMs = await waiting.want(this.key)
    } catch (error) {
      if (error instanceof RetryableLockError) this.#outlook.failed(error)
      else head.end({ error })
      return
    }
    if (remainingMs === undefined) {
      this.#outlook.contradicted()
      return
    }
    this.#outlook.stillHeld()
    const endMs = this.#untilEnd(Math.min(remainingMs, this.#handedOnMs))
    if (!this.#outlook.maybeFree && this.size > 0) await this.#nap.sleep(Math.min(pollMs, endMs))
  }

  /** Hands the grant to `waiter`, unless it has gone: then to the next, or back. */
  async #give(waiter: Waiter, handle: LockHandle): Promise<void> {
    const { handOut, abandon } = this.#options
    this.#waiters.delete(waiter)
    this.#claimEnded?.()
    this.#outlook.granted()
    this.#decided()
    if (waiter.ending !== undefined && waiter.ending !== 'timed-out') {
      await abandon(handle)
      this.#settle(waiter)
      return
    }
    handOut(handle, waiter)
    waiter.resolve(handle)
    if (this.size > 0) void this.askAgain(handle.sessionId)
    else this.#nap.wake()
  }

  /** No decision, or one against this waiter alone. */
  #failed(waiter: Waiter, error: unknown): void {
    if (error instanceof RetryableLockError) {
      // Out of time while it was being asked for: that was its last round trip.
      waiter.unsettled = waiter.ending !== 'timed-out' && !waiter.isParting
      this.#outlook.failed(error)
      this.#decided()
    } else {
      if (waiter.ending === undefined || waiter.ending === 'timed-out') waiter.ending = { error }
      this.#outlook.mayBeFree()
    }
    this.#stay(waiter)
  }

  /** The answer is there and was not a grant: `waiter` keeps its place, or leaves if it wants to. */
  #stay(waiter: Waiter): void {
    waiter.claimed = false
    this.#claimEnded?.()
    if (waiter.ending !== undefined) this.#leave(waiter)
    else this.#arm(waiter)
  }

  #arm(waiter: Waiter): void {
    if (!waiter.armed) waiter.arm(this.#options.alarms, () => this.#leave(waiter))
  }

  #leave(waiter: Waiter): void {
    if (waiter.claimed) return
    if (waiter.unsettled) {
      // Its last attempt may have been recorded: it asks once more before it goes.
      waiter.isParting = true
      void this.#ask(waiter)
    } else if (waiter.ending === 'timed-out' && this.#outlook.isBlank) {
      this.#undecided.push(waiter)
    } else this.#settle(waiter)
  }

  /** The store's first word, whatever it was, is there. */
  #decided(): void {
    for (const waiter of this.#undecided.splice(0)) {
      // One may have become the head, and be the one that is being asked for.
      if (!waiter.claimed) this.#settle(waiter)
    }
  }

  #settle(waiter: Waiter): void {
    this.#waiters.delete(waiter)
    if (this.size === 0) this.#nap.wake()
    if (waiter.ending !== 'timed-out') waiter.reject(waiter.ending?.error)
    else if (this.#outlook.heldSince(waiter.sinceNanos)) waiter.resolve(undefined)
    else {
      const why = this.#outlook.failure === undefined ? '' : `: ${this.#outlook.failure.message}`
      waiter.reject(new ContentionError(`the store gave no decision within maxWaitMs${why}`))
    }
  }

  #untilEnd(remainingMs: number): number {
    return remainingMs + SLACK_MS + this.#options.maxLatenessMs
  }

  /** Settles when the call to the store is back that the head is claimed for. */
  #claimEnd(): Promise<void> {
    return new Promise((resolve) => {
      this.#claimEnded = () => {
        this.#claimEnded = undefined
        resolve()
      }
    })
  }

  #head(): Waiter | undefined {
    return this.#waiters.values().next().value
  }
}
