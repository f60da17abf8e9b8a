import { type AbortSignalLike, checkKey, checkMaxWaitMs, checkTtlMs } from '@dlock/lock-api'

/** How a lock is wanted. */
export interface AcquireOptions {
  /**
   * The lease asked for, in whole milliseconds from 1; default 30 000. The client renews it for as
   * long as the lock is held, so it is how long the lock outlives its holder, not how long the
   * work may take. One that is not several round trips long cannot be kept.
   */
  readonly ttlMs?: number
  /**
   * How long to wait while another holds the lock, in whole milliseconds from 0 to 24 hours;
   * default 0. The call takes at most 2.5 s longer, for the answer.
   */
  readonly maxWaitMs?: number
  /**
   * The longest hold, in whole milliseconds from 1; default unlimited. When it is over the lock is
   * not renewed any more and counts as lost, so that a job that hangs for ever does not hold it
   * for ever.
   */
  readonly maxHoldMs?: number
  /** Gives up the acquire. Once the lock is granted it has no effect: the release still happens. */
  readonly signal?: AbortSignalLike
}

/** `AcquireOptions` checked, with what was left out filled in. */
export interface CheckedAcquire {
  readonly key: string
  readonly ttlMs: number
  readonly maxWaitMs: number
  readonly maxHoldMs: number | undefined
  readonly signal: AbortSignalLike | undefined
}

const DEFAULT_TTL_MS = 30_000

/** @throws TypeError, RangeError that name the field, its value and its range */
export function checkAcquire(key: string, options: AcquireOptions): CheckedAcquire {
  const { ttlMs = DEFAULT_TTL_MS, maxWaitMs = 0, maxHoldMs, signal } = options
  return {
    key: checkKey(key),
    ttlMs: checkTtlMs(ttlMs),
    maxWaitMs: checkMaxWaitMs(maxWaitMs),
    maxHoldMs: maxHoldMs === undefined ? undefined : checkTtlMs(maxHoldMs, 'maxHoldMs'),
    signal,
  }
}

/** @throws RangeError when it is not a finite number of milliseconds from 0 */
export function checkNeedMs(needMs: number): number {
  if (typeof needMs !== 'number') {
    throw new TypeError(`needMs must be a number of milliseconds, got ${typeof needMs}`)
  }
  if (!(needMs >= 0 && needMs < Number.POSITIVE_INFINITY)) {
    throw new RangeError(`needMs must be a finite number of milliseconds from 0, got ${needMs}`)
  }
  return needMs
}
