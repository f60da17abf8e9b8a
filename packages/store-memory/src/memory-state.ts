import { LockHandle, LockInfo, type Revocation, SessionDeadError } from '@dlock/lock-api'
import type { Clock, Ids } from '@dlock/system'
import { TokenCounter } from './fencing-token.ts'

export interface Session {
  readonly sessionId: string
  readonly ownerId: string
  /** Counts the sessions opened; names this one to people, and orders the listing. */
  readonly ordinal: number
  readonly createdAt: Date
  endsAtNanos: bigint
}

export interface Grant {
  readonly key: string
  readonly ownerId: string
  readonly sessionId: string
  readonly fencingToken: bigint
  readonly acquiredAt: Date
  endsAtNanos: bigint
  /** Somebody waits: announce when the key is freed. */
  wanted: boolean
}

/**
 * Everything the store knows. A record whose time is over stays in its map until it is replaced or
 * reaped, but counts for nothing: whoever looks goes through `liveGrant` and `liveSession`. The
 * instants are of the monotonic clock; its wall clock is for people.
 */
export class MemoryState {
  readonly clock: Clock
  readonly ids: Ids
  readonly grants: Map<string, Grant> = new Map()
  readonly sessions: Map<string, Session> = new Map()
  /** Append-only, the oldest first. */
  readonly revocations: Revocation[] = []
  readonly tokens: TokenCounter = new TokenCounter()
  readonly listeners: Set<(key: string) => void> = new Set()
  sessionsOpened = 0

  constructor(clock: Clock, ids: Ids) {
    this.clock = clock
    this.ids = ids
  }

  /** Begins with what `backup` knows. Whoever listens there does not listen here. */
  restore(backup: MemoryState): void {
    for (const grant of backup.grants.values()) this.grants.set(grant.key, { ...grant })
    for (const session of backup.sessions.values()) {
      this.sessions.set(session.sessionId, { ...session })
    }
    this.revocations.push(...backup.revocations)
    this.sessionsOpened = backup.sessionsOpened
    if (backup.tokens.highest > 0n) this.tokens.advance(backup.tokens.highest)
  }

  liveSession(sessionId: string): Session | undefined {
    const session = this.sessions.get(sessionId)
    return session !== undefined && this.isAhead(session.endsAtNanos) ? session : undefined
  }

  /** @throws SessionDeadError when the session is not alive */
  requireLiveSession(sessionId: string): Session {
    const session = this.liveSession(sessionId)
    if (session !== undefined) return session
    throw new SessionDeadError(this.sessions.has(sessionId) ? 'expired' : 'unknown')
  }

  /** A grant lives while its lease runs and its session lives. */
  liveGrant(key: string): Grant | undefined {
    const grant = this.grants.get(key)
    if (grant === undefined || !this.isAhead(grant.endsAtNanos)) return undefined
    return this.liveSession(grant.sessionId) === undefined ? undefined : grant
  }

  liveGrantsOf(sessionId: string): Grant[] {
    if (this.liveSession(sessionId) === undefined) return []
    return [...this.grants.values()].filter(
      (grant) => grant.sessionId === sessionId && this.isAhead(grant.endsAtNanos),
    )
  }

  /** Mints a token and writes the grant in the place of whatever was recorded under the key. */
  grant(key: string, ownerId: string, sessionId: string, ttlMs: number, wanted = false): Grant {
    const grant: Grant = {
      key,
      ownerId,
      sessionId,
      fencingToken: this.tokens.mint(),
      acquiredAt: this.clock.now(),
      endsAtNanos: this.inMs(ttlMs),
      wanted,
    }
    this.grants.set(key, grant)
    return grant
  }

  /** Tells every listener that a wanted grant is gone. The caller has finished its own changes. */
  announce(freed: readonly Grant[]): void {
    for (const { key, wanted } of freed) {
      if (wanted) for (const listener of this.listeners) listener(key)
    }
  }

  handleOf(grant: Grant, ttlMs: number): LockHandle {
    return new LockHandle(
      grant.key,
      grant.ownerId,
      grant.sessionId,
      grant.fencingToken,
      this.inMs(ttlMs),
      this.wallTimeOf(grant.endsAtNanos),
    )
  }

  /** This store knows of no waiters: they queue in the engine. */
  infoOf(grant: Grant): LockInfo {
    return new LockInfo(
      grant.key,
      grant.ownerId,
      grant.fencingToken,
      grant.acquiredAt,
      this.wallTimeOf(grant.endsAtNanos),
      0,
    )
  }

  /** At its last instant a lease is over. */
  isAhead(nanos: bigint): boolean {
    return nanos > this.clock.monotonicNanos()
  }

  inMs(ms: number): bigint {
    return this.clock.monotonicNanos() + BigInt(ms) * 1_000_000n
  }

  /** Rounded up, so that nobody who waits so long comes too early. */
  msUntil(nanos: bigint): number {
    return Math.ceil(Number(nanos - this.clock.monotonicNanos()) / 1_000_000)
  }

  /** What the wall clock shows at a monotonic instant, if nobody sets it in between. */
  wallTimeOf(nanos: bigint): Date {
    return new Date(this.clock.now().getTime() + this.msUntil(nanos))
  }
}

export function later(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

export function earlier(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
