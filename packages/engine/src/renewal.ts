import type { LockHandle, LockStore } from '@dlock/lock-api'
import type { Clock } from '@dlock/system'
import type { Bookkeeping } from './bookkeeping.ts'
import { secondsBetween } from './durations.ts'
import type { Grants } from './grants.ts'
import type { EngineMeter } from './meter.ts'

/** What a renewal asks for when neither the caller nor this process knows better. */
const DEFAULT_TTL_MS = 30_000

export interface RenewalOptions {
  readonly store: LockStore
  readonly clock: Clock
  readonly grants: Grants
  readonly bookkeeping: Bookkeeping
  readonly meter: EngineMeter
  readonly maxTtlMs: number
  readonly deadlineNanos: (sentNanos: bigint, ttlMs: number) => bigint
}

/** Prolongs grants. The deadline counts from when the request was sent, as for a new grant. */
export class Renewal {
  readonly #options: RenewalOptions

  constructor(options: RenewalOptions) {
    this.#options = options
  }

  /**
   * @param ttlMs `undefined`: what the grant was last granted or renewed with
   * @returns `undefined`: lost, or not a grant of this session
   * @throws ContentionError, NotLeaderError when nothing is known
   */
  async renew(
    sessionId: string,
    key: string,
    fencingToken: bigint,
    ttlMs: number | undefined,
  ): Promise<LockHandle | undefined> {
    const { clock, meter } = this.#options
    const sentNanos = clock.monotonicNanos()
    let outcome: 'renewed' | 'lost' | 'error' = 'error'
    try {
      const handle = await this.#extend(sessionId, key, fencingToken, ttlMs, sentNanos)
      outcome = handle === undefined ? 'lost' : 'renewed'
      return handle
    } finally {
      meter.renewed(outcome, secondsBetween(sentNanos, clock.monotonicNanos()))
    }
  }

  async #extend(
    sessionId: string,
    key: string,
    fencingToken: bigint,
    wantedTtlMs: number | undefined,
    sentNanos: bigint,
  ): Promise<LockHandle | undefined> {
    const { store, grants, bookkeeping, maxTtlMs, deadlineNanos } = this.#options
    const known = grants.find(key, fencingToken)
    if (known !== undefined && known.sessionId !== sessionId) return undefined
    const ttlMs = wantedTtlMs ?? known?.ttlMs ?? Math.min(DEFAULT_TTL_MS, maxTtlMs)
    const ended = grants.follow(key, fencingToken, sessionId)
    let handle: LockHandle | undefined
    let wasEnded = true
    try {
      handle = await store.extend(key, fencingToken, ttlMs)
    } finally {
      wasEnded = ended()
    }
    if (handle === undefined) {
      bookkeeping.lost(key, fencingToken)
      return undefined
    }
    // Its owner released it while the renewal was on its way: it stays gone (P-20).
    if (wasEnded || handle.sessionId !== sessionId) return undefined
    const renewed = handle.withClientDeadline(deadlineNanos(sentNanos, ttlMs))
    bookkeeping.renewed(renewed, ttlMs)
    return renewed
  }
}
