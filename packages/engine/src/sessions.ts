import {
  type SessionCapability,
  SessionDeadError,
  type SessionRegistry,
  type SessionState,
} from '@dlock/lock-api'
import type { Clock, Random, Timer } from '@dlock/system'
import { jitteredMs, msBetween, nanosOf } from './durations.ts'
import type { Events } from './events.ts'
import type { Waiter } from './waiter.ts'

/** Added to a session's end, which the store may round down to whole milliseconds. */
const SLACK_MS = 2
/** At least so long between two questions about a session that outlives its time. */
const LOOK_AGAIN_MS = 50

interface Known {
  readonly ownerId: string
  /** Opened elsewhere: it may hold grants that this process has not seen. */
  readonly adopted: boolean
  /** When it ends if nobody prolongs it, here or elsewhere; by this process's clock. */
  endsAtNanos: bigint
  readonly waiters: Set<Waiter>
  watch: Timer | undefined
}

export type SessionEnd = 'closed' | 'expired'

export interface SessionsOptions {
  readonly registry: SessionRegistry
  readonly describing: SessionCapability | undefined
  readonly clock: Clock
  readonly random: Random
  readonly events: Events
  readonly fallbackPollMs: number
  readonly maxLatenessMs: number
  readonly grantedTtlMs: (ttlMs: number) => number
  /** A session has ended for certain, and every grant on it. */
  readonly onEnd: (sessionId: string, how: SessionEnd) => void
  readonly limit?: number
}

/**
 * What this process knows of the sessions that it serves: whose they are, so that an acquire needs
 * no second round trip, and when they end, so that a waiter of a dead session is refused within
 * about one session TTL (P-01). The store alone decides whether a session lives; here a session is
 * forgotten only after the store said so.
 *
 * A store that cannot describe a session (no `SessionCapability`) leaves two gaps: whose a session
 * of another process is cannot be checked, and a waiter of a dead session is refused only when its
 * turn comes.
 */
export class Sessions {
  /** In the order of last use; above the limit the oldest is forgotten and asked about again. */
  readonly #known = new Map<string, Known>()
  readonly #options: SessionsOptions
  readonly #limit: number

  constructor(options: SessionsOptions) {
    this.#options = options
    this.#limit = options.limit ?? 100_000
  }

  get size(): number {
    return this.#known.size
  }

  async open(ownerId: string, ttlMs: number): Promise<string> {
    const endsAtNanos = this.#endFromNow(ttlMs)
    const sessionId = await this.#options.registry.openSession(ownerId, ttlMs)
    this.#remember(sessionId, ownerId, endsAtNanos, false)
    this.#tell('session_opened', ownerId)
    return sessionId
  }

  async heartbeat(sessionId: string, ttlMs: number): Promise<boolean> {
    const endsAtNanos = this.#endFromNow(ttlMs)
    const alive = await this.#options.registry.heartbeat(sessionId, ttlMs)
    if (!alive) {
      this.ended(sessionId, 'expired')
      return false
    }
    // Closed meanwhile, perhaps: only what is still in the book is prolonged.
    const known = this.#known.get(sessionId)
    if (known !== undefined) {
      if (endsAtNanos > known.endsAtNanos) known.endsAtNanos = endsAtNanos
      this.#known.delete(sessionId)
      this.#known.set(sessionId, known)
    }
    return true
  }

  async close(sessionId: string): Promise<number> {
    const released = await this.#options.registry.closeSession(sessionId)
    this.ended(sessionId, 'closed')
    return released
  }

  /** From the book while that is fresh, else from the store. */
  async describe(sessionId: string): Promise<SessionState> {
    const known = this.#known.get(sessionId)
    const { clock, describing } = this.#options
    if (known !== undefined) {
      const remainingMs = Math.floor(msBetween(clock.monotonicNanos(), known.endsAtNanos))
      if (remainingMs > 0) return { state: 'live', ownerId: known.ownerId, remainingMs }
    }
    return describing === undefined ? { state: 'unknown' } : this.#learn(sessionId, describing)
  }

  /**
   * @returns a promise only when the store has to be asked
   * @throws SessionDeadError when the session is not alive; by way of the promise
   * @throws RangeError when it is another's
   */
  checkOwner(sessionId: string, ownerId: string): Promise<void> | undefined {
    const known = this.#known.get(sessionId)
    if (known === undefined) return this.#learnOwner(sessionId, ownerId)
    checkSame(known.ownerId, ownerId)
    return undefined
  }

  /** Whose the session is, if this process knows. */
  ownerOf(sessionId: string): string | undefined {
    return this.#known.get(sessionId)?.ownerId
  }

  /** True when another process may have made grants on the session. */
  isAdopted(sessionId: string): boolean {
    return this.#known.get(sessionId)?.adopted ?? true
  }

  /** Ends `waiter`'s wait when its session has died. */
  watch(waiter: Waiter): void {
    const { sessionId, ownerId } = waiter.request
    // Gone from the book in this very moment: due at once, which asks the store.
    const known =
      this.#known.get(sessionId) ??
      this.#remember(sessionId, ownerId, this.#options.clock.monotonicNanos(), true)
    known.waiters.add(waiter)
    if (known.watch === undefined) this.#arm(sessionId, known, this.#untilEndMs(known))
  }

  unwatch(waiter: Waiter): void {
    const known = this.#known.get(waiter.request.sessionId)
    if (known?.waiters.delete(waiter) !== true || known.waiters.size > 0) return
    known.watch?.cancel()
    known.watch = undefined
  }

  /** The session is dead for certain. */
  ended(sessionId: string, how: SessionEnd, error?: SessionDeadError): void {
    const known = this.#known.get(sessionId)
    this.#known.delete(sessionId)
    if (known !== undefined) {
      known.watch?.cancel()
      const why = error ?? new SessionDeadError(how === 'closed' ? 'unknown' : 'expired')
      for (const waiter of known.waiters) waiter.end({ error: why })
      this.#tell(how === 'closed' ? 'session_closed' : 'session_expired', known.ownerId)
    }
    this.#options.onEnd(sessionId, how)
  }

  /** Asks the store about every session that has ended unless another process prolonged it. */
  async sweep(): Promise<void> {
    const { clock, describing, maxLatenessMs } = this.#options
    const endedBy = clock.monotonicNanos() - nanosOf(maxLatenessMs + SLACK_MS)
    const due = [...this.#known].filter(([, known]) => known.endsAtNanos <= endedBy)
    for (const [sessionId, known] of due) {
      if (describing !== undefined) await this.#learn(sessionId, describing)
      else if (known.waiters.size === 0) this.#known.delete(sessionId)
    }
  }

  async #learnOwner(sessionId: string, ownerId: string): Promise<void> {
    const { describing } = this.#options
    if (describing === undefined) return
    const state = await this.#learn(sessionId, describing)
    if (state.state !== 'live') throw new SessionDeadError(state.state)
    checkSame(state.ownerId, ownerId)
  }

  async #learn(sessionId: string, describing: SessionCapability): Promise<SessionState> {
    const askedNanos = this.#options.clock.monotonicNanos()
    const state = await describing.describeSession(sessionId)
    if (state.state !== 'live') {
      this.ended(sessionId, 'expired', new SessionDeadError(state.state))
      return state
    }
    const endsAtNanos = askedNanos + nanosOf(state.remainingMs)
    const known = this.#known.get(sessionId)
    if (known === undefined) this.#remember(sessionId, state.ownerId, endsAtNanos, true)
    else if (endsAtNanos > known.endsAtNanos) known.endsAtNanos = endsAtNanos
    return state
  }

  #arm(sessionId: string, known: Known, delayMs: number): void {
    const timer = this.#options.clock.setTimer(delayMs, () => {
      void this.#look(sessionId, known, timer)
    })
    known.watch = timer
  }

  /** The session's end is due: did it come? Never rejects. */
  async #look(sessionId: string, known: Known, watch: Timer): Promise<void> {
    const { describing, random, fallbackPollMs } = this.#options
    if (describing === undefined) return
    let nextMs = this.#untilEndMs(known)
    try {
      if (nextMs === 0 && (await this.#learn(sessionId, describing)).state !== 'live') return
      nextMs = Math.max(this.#untilEndMs(known), LOOK_AGAIN_MS)
    } catch {
      // No answer is no verdict: ask again.
      nextMs = jitteredMs(random, fallbackPollMs)
    }
    // Otherwise its last waiter left meanwhile, and perhaps another came with a watch of its own.
    if (known.watch === watch) this.#arm(sessionId, known, nextMs)
  }

  #untilEndMs(known: Known): number {
    const { clock, maxLatenessMs } = this.#options
    const leftMs = msBetween(clock.monotonicNanos(), known.endsAtNanos)
    return leftMs <= 0 ? 0 : leftMs + maxLatenessMs + SLACK_MS
  }

  #endFromNow(ttlMs: number): bigint {
    const { clock, grantedTtlMs } = this.#options
    return clock.monotonicNanos() + nanosOf(grantedTtlMs(ttlMs))
  }

  #remember(sessionId: string, ownerId: string, endsAtNanos: bigint, adopted: boolean): Known {
    const known: Known = {
      ownerId,
      adopted,
      endsAtNanos,
      waiters: new Set(),
      watch: undefined,
    }
    this.#known.set(sessionId, known)
    if (this.#known.size > this.#limit) this.#forgetOldest()
    return known
  }

  /** The oldest for which nobody waits. */
  #forgetOldest(): void {
    for (const [sessionId, { waiters }] of this.#known) {
      if (waiters.size > 0) continue
      this.#known.delete(sessionId)
      return
    }
  }

  #tell(type: 'session_opened' | 'session_closed' | 'session_expired', ownerId: string): void {
    const { clock, events } = this.#options
    if (events.heard) events.emit({ type, at: clock.now(), ownerId })
  }
}

function checkSame(sessionOwnerId: string, ownerId: string): void {
  if (ownerId === sessionOwnerId) return
  throw new RangeError(`ownerId must be the session's owner, got ${JSON.stringify(ownerId)}`)
}
