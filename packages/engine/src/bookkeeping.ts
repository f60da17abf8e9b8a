import type { LockHandle, LockOutcome } from '@dlock/lock-api'
import type { Clock } from '@dlock/system'
import { msBetween } from './durations.ts'
import type { Events } from './events.ts'
import type { LockRequest } from './fencing-token.ts'
import type { Grant, Grants } from './grants.ts'
import type { SessionEnd } from './sessions.ts'

export interface BookkeepingOptions {
  readonly grants: Grants
  readonly events: Events
  readonly clock: Clock
  /** When the lease of `handle`, granted for `ttlMs`, ends; by this process's clock, never late. */
  readonly leaseEndNanos: (handle: LockHandle, ttlMs: number) => bigint
  /** The key may have become free in a way that nobody announces. */
  readonly onFreed: (key: string) => void
}

/** Where the book of grants and the events meet: what begins and ends here is written and told. */
export class Bookkeeping {
  readonly #options: BookkeepingOptions

  constructor(options: BookkeepingOptions) {
    this.#options = options
  }

  /** A caller is about to get `handle`, which it asked for at `sinceNanos`. */
  handedOut(handle: LockHandle, request: LockRequest, sinceNanos: bigint): void {
    const { grants, events, clock } = this.#options
    const { key, ownerId, fencingToken } = handle
    const isNew = grants.find(key, fencingToken) === undefined
    this.#record(handle, request.ttlMs)
    if (!isNew || !events.heard) return
    const waitedMs = Math.round(msBetween(sinceNanos, clock.monotonicNanos()))
    events.emit({ type: 'lock_granted', at: clock.now(), key, ownerId, fencingToken, waitedMs })
  }

  /** The lease was prolonged to `ttlMs` from when `handle` was asked for. */
  renewed(handle: LockHandle, ttlMs: number): void {
    this.#record(handle, ttlMs)
  }

  /** The store said that the grant is gone; `released`: by the call that was just answered. */
  gone(key: string, fencingToken: bigint, released: boolean, ownerId?: string): void {
    const grant = this.#options.grants.forget(key, fencingToken)
    const releasedOwnerId = grant?.ownerId ?? ownerId
    if (released && releasedOwnerId !== undefined) {
      this.#tell('lock_released', key, releasedOwnerId, fencingToken)
    } else if (grant !== undefined) this.#tellIfExpired(grant)
  }

  /** A renewal was told that the grant is lost. */
  lost(key: string, fencingToken: bigint): void {
    this.gone(key, fencingToken, false)
    this.#options.onFreed(key)
  }

  /** A grant whose lease has run out, as the store has just confirmed. */
  expired(grant: Grant): void {
    this.lost(grant.key, grant.fencingToken)
  }

  /** An operator ended the grant. */
  revoked(outcome: LockOutcome, operator: string, reason: string): void {
    const { grants, events, clock, onFreed } = this.#options
    const { key, previousOwnerId, previousToken, newTokenFloor } = outcome
    if (
      previousOwnerId === undefined ||
      previousToken === undefined ||
      newTokenFloor === undefined
    ) {
      return
    }
    grants.forget(key, previousToken)
    events.emit({
      type: 'lock_revoked',
      at: clock.now(),
      key,
      operator,
      reason,
      previousOwnerId,
      previousToken,
      newTokenFloor,
    })
    onFreed(key)
  }

  /** The session's grants went with it. */
  sessionEnded(sessionId: string, how: SessionEnd): void {
    for (const { key, ownerId, fencingToken } of this.#options.grants.forgetSession(sessionId)) {
      this.#tell(how === 'closed' ? 'lock_released' : 'lease_expired', key, ownerId, fencingToken)
      this.#options.onFreed(key)
    }
  }

  #record(handle: LockHandle, ttlMs: number): void {
    const { grants, leaseEndNanos } = this.#options
    const replaced = grants.record(handle, ttlMs, leaseEndNanos(handle, ttlMs))
    if (replaced !== undefined) this.#tellIfExpired(replaced)
  }

  /** A grant whose end nobody saw: it ran out, if its time was over; else it ended elsewhere. */
  #tellIfExpired(grant: Grant): void {
    if (grant.endsAtNanos > this.#options.clock.monotonicNanos()) return
    this.#tell('lease_expired', grant.key, grant.ownerId, grant.fencingToken)
  }

  #tell(
    type: 'lock_released' | 'lease_expired',
    key: string,
    ownerId: string,
    fencingToken: bigint,
  ): void {
    const { events, clock } = this.#options
    if (events.heard) events.emit({ type, at: clock.now(), key, ownerId, fencingToken })
  }
}
