import type { LockHandle, LockOutcome, Transfer } from '@dlock/lock-api'
import type { Clock } from '@dlock/system'
import type { Journal } from './journal.ts'

interface SeenSession {
  endsAtNanos: bigint
  /** How often the store's clock had been moved when that was said. */
  jumps: number
  isClosed: boolean
}

interface SeenGrant {
  readonly key: string
  readonly sessionId: string
  readonly fencingToken: bigint
  readonly sinceNanos: bigint
  endsAtNanos: bigint
  jumps: number
  /** It was ended on purpose: released, revoked, handed on, or with its session. */
  isEnded: boolean
}

/** What the witness knew at some moment. */
export interface Testimony {
  readonly sessions: readonly (readonly [string, SeenSession])[]
  readonly grants: readonly SeenGrant[]
}

/**
 * Stands beside the store and keeps its own account of who holds what, from the answers alone, with
 * the store's clock. Whatever contradicts the account is a violation: two live grants of a key
 * (INV-06), a token that is not above every earlier number of its key (INV-04), a release of
 * another's grant (FR-05), a renewal of what was over (FR-06), a session that came back (FR-04).
 */
export class StoreWitness {
  readonly #clock: Clock
  readonly #journal: Journal
  readonly #sessions = new Map<string, SeenSession>()
  readonly #current = new Map<string, SeenGrant>()
  readonly #all = new Map<string, SeenGrant>()
  /** Never forgotten, whatever the store forgets. */
  readonly #highest = new Map<string, bigint>()
  readonly #jumps: () => number

  /** @param jumps how often the store's clock has been moved by hand */
  constructor(clock: Clock, journal: Journal, jumps: () => number) {
    this.#clock = clock
    this.#journal = journal
    this.#jumps = jumps
  }

  /** The highest number of any key: tokens and floors. */
  get highest(): bigint {
    let highest = 0n
    for (const token of this.#highest.values()) if (token > highest) highest = token
    return highest
  }

  openedSession(sessionId: string, ttlMs: number): void {
    this.#sessions.set(sessionId, { ...this.#until(ttlMs), isClosed: false })
  }

  heartbeat(sessionId: string, ttlMs: number, isAlive: boolean): void {
    const session = this.#liveSession(sessionId)
    if (isAlive && session === undefined) {
      this.#journal.violate('FR-04', 'a heartbeat prolonged a session that was dead')
    } else if (!isAlive && session !== undefined) {
      this.#journal.violate('FR-04', 'a live session was called dead')
    }
    if (session !== undefined) this.#prolong(session, ttlMs)
  }

  closedSession(sessionId: string): void {
    const session = this.#sessions.get(sessionId)
    if (session !== undefined) session.isClosed = true
    for (const grant of this.#current.values()) {
      if (grant.sessionId === sessionId) grant.isEnded = true
    }
  }

  inserted(key: string, sessionId: string, ttlMs: number, handle: LockHandle | undefined): void {
    const live = this.#live(key)
    if (handle === undefined) {
      if (live === undefined || live.sessionId === sessionId) {
        this.#journal.violate('FR-01', `${key} was refused though nobody else held it`)
      }
      return
    }
    if (this.#liveSession(sessionId) === undefined) {
      this.#journal.violate('FR-04', `${key} was granted to a dead session`)
    }
    if (live === undefined) this.#granted(handle, ttlMs)
    else if (live.fencingToken === handle.fencingToken && live.sessionId === sessionId) {
      this.#prolong(live, ttlMs)
    } else {
      const { fencingToken } = live
      this.#journal.violate(
        'INV-06',
        `${key} was granted with ${handle.fencingToken} while ${fencingToken} was live`,
      )
      this.#granted(handle, ttlMs)
    }
  }

  extended(key: string, token: bigint, ttlMs: number, handle: LockHandle | undefined): void {
    const live = this.#live(key)
    const mayBe = live?.fencingToken === token
    if (handle !== undefined && !mayBe) {
      this.#journal.violate('FR-06', `${key} ${token} was renewed though it was over`)
    } else if (handle === undefined && mayBe) {
      this.#journal.violate('FR-06', `${key} ${token} was called lost though it was live`)
    }
    if (live !== undefined && mayBe) this.#prolong(live, ttlMs)
  }

  deleted(key: string, token: bigint, isDeleted: boolean): void {
    const live = this.#live(key)
    if (isDeleted && live !== undefined && live.fencingToken !== token) {
      this.#journal.violate('FR-05', `a release of ${token} removed ${live.fencingToken} of ${key}`)
    } else if (!isDeleted && live?.fencingToken === token) {
      this.#journal.violate('FR-05', `${key} ${token} was called gone though it was live`)
    }
    if (isDeleted) this.#end(key)
  }

  transferred(
    key: string,
    token: bigint,
    next: { readonly sessionId: string; readonly ttlMs: number },
    { released, granted }: Transfer,
  ): void {
    this.deleted(key, token, released)
    if (granted === undefined) return
    if (!released) this.#journal.violate('INV-06', `${key} was handed on but not released`)
    this.inserted(key, next.sessionId, next.ttlMs, granted)
  }

  revoked(key: string, outcome: LockOutcome): void {
    const { newTokenFloor, previousToken } = outcome
    if (newTokenFloor === undefined) return
    if (this.#live(key)?.fencingToken !== previousToken) {
      this.#journal.violate('FR-08', `${key} ${previousToken} was revoked though it was not live`)
    }
    this.#end(key)
    this.#number(key, newTokenFloor, 'floor')
  }

  /** What a backup taken now would hold. */
  testimony(): Testimony {
    return {
      sessions: [...this.#sessions].map(([id, session]) => [id, { ...session }] as const),
      grants: [...this.#current.values()].map((grant) => ({ ...grant })),
    }
  }

  /** The store was put back to what it was then. Numbers that were handed out stay used up. */
  restored({ sessions, grants }: Testimony): void {
    // Times from before mean nothing: what was granted then is not asked about any more.
    this.#all.clear()
    this.#sessions.clear()
    this.#current.clear()
    for (const [id, session] of sessions) this.#sessions.set(id, { ...session })
    const sinceNanos = this.#clock.monotonicNanos()
    for (const grant of grants) this.#current.set(grant.key, { ...grant, sinceNanos })
  }

  /**
   * FR-11: a holder whose clocks say that the lease is good. The grant may have been ended on
   * purpose, which nobody can know in time; but it must not have run out.
   */
  believed(key: string, token: bigint): void {
    const grant = this.#all.get(`${key} ${token}`)
    if (grant === undefined || grant.isEnded) return
    const session = this.#sessions.get(grant.sessionId)
    if (session === undefined || session.isClosed) return
    const jumps = this.#jumps()
    if (grant.jumps !== jumps || session.jumps !== jumps) return
    const now = this.#clock.monotonicNanos()
    if (grant.endsAtNanos > now && session.endsAtNanos > now) return
    this.#journal.violate('FR-11', `${key} ${token} ran out and its holder counts on it`)
  }

  /** Now, as the store's clock shows it. */
  get nowNanos(): bigint {
    return this.#clock.monotonicNanos()
  }

  /**
   * Decision 3: an acquire that was sent at `sentNanos` was told that another holds the key, though
   * its own session held it all the while.
   */
  refused(key: string, sessionId: string, sentNanos: bigint): void {
    const live = this.#live(key)
    if (live === undefined || live.sessionId !== sessionId || live.sinceNanos > sentNanos) return
    this.#journal.violate('FR-01', `${key} ${live.fencingToken} was refused to its own holder`)
  }

  #granted({ key, sessionId, fencingToken }: LockHandle, ttlMs: number): void {
    const sinceNanos = this.#clock.monotonicNanos()
    const until = this.#until(ttlMs)
    const grant = { key, sessionId, fencingToken, sinceNanos, ...until, isEnded: false }
    this.#current.set(key, grant)
    this.#all.set(`${key} ${fencingToken}`, grant)
    this.#number(key, fencingToken, 'token')
  }

  #number(key: string, number: bigint, what: string): void {
    const highest = this.#highest.get(key) ?? 0n
    if (number <= highest) {
      this.#journal.violate('INV-04', `${key} got ${what} ${number} after ${highest}`)
    } else this.#highest.set(key, number)
  }

  #end(key: string): void {
    const grant = this.#current.get(key)
    if (grant !== undefined) grant.isEnded = true
  }

  #live(key: string): SeenGrant | undefined {
    const grant = this.#current.get(key)
    if (grant === undefined || grant.isEnded) return undefined
    const isOver = grant.endsAtNanos <= this.#clock.monotonicNanos()
    return isOver || this.#liveSession(grant.sessionId) === undefined ? undefined : grant
  }

  #liveSession(sessionId: string): SeenSession | undefined {
    const session = this.#sessions.get(sessionId)
    if (session === undefined || session.isClosed) return undefined
    return session.endsAtNanos > this.#clock.monotonicNanos() ? session : undefined
  }

  #until(ttlMs: number): { endsAtNanos: bigint; jumps: number } {
    const endsAtNanos = this.#clock.monotonicNanos() + BigInt(ttlMs) * 1_000_000n
    return { endsAtNanos, jumps: this.#jumps() }
  }

  #prolong(seen: SeenSession | SeenGrant, ttlMs: number): void {
    const until = this.#until(ttlMs)
    if (until.endsAtNanos > seen.endsAtNanos) Object.assign(seen, until)
  }
}
