import {
  type CapableStore,
  type LockStore,
  MAX_TTL_MS,
  MAX_WAIT_MS,
  type SessionRegistry,
} from '@dlock/lock-api'
import { type Clock, type Random, systemClock, systemRandom } from '@dlock/system'
import { type EngineMeter, noMeter } from './meter.ts'

/** What an engine is made of. Only the store is required; it stays the caller's to close. */
export interface EngineOptions {
  /** The only authority. What it can do beyond the two contracts is found out once. */
  readonly store: LockStore & SessionRegistry & Partial<CapableStore>
  /** Deadlines and timers go by its monotonic clock; this process's unless given. */
  readonly clock?: Clock
  /** Jitters retries, polls and sweeps; this process's unless given. */
  readonly random?: Random
  /**
   * The part of a lease that its holder does not count on, from 0 to below 1; 0.30 unless given. A
   * handle's deadline is when its request was sent + granted lease × (1 − this) (FR-11).
   */
  readonly safetyMargin?: number
  /** The longest lease and session, in milliseconds, from 1 to 365 days; 1 hour unless given. */
  readonly maxTtlMs?: number
  /** The longest wait of one call, in milliseconds, from 0 to 24 hours; 24 hours unless given. */
  readonly maxWaitMs?: number
  /**
   * How many calls may wait for one key in this process, from 1; 1 000 unless given. One more is
   * refused with a `ContentionError` that says when to come back.
   */
  readonly maxWaiters?: number
  /** At most how late a lost announcement is noticed, in ms from 1; 1 000 unless given. */
  readonly fallbackPollMs?: number
  /** At most the time between two sweeps, in ms from 1; 1 000 unless given. */
  readonly reapEveryMs?: number
  /** Told how long each call took; nobody unless given. */
  readonly meter?: EngineMeter
}

/** The options with everything filled in, but the store. */
export type Settings = Required<Omit<EngineOptions, 'store'>>

/** @throws RangeError that names the option, its value and its range */
export function settingsFrom(options: EngineOptions): Settings {
  const { safetyMargin = 0.3 } = options
  if (!(safetyMargin >= 0 && safetyMargin < 1)) {
    throw new RangeError(`safetyMargin must be from 0 to below 1, got ${safetyMargin}`)
  }
  return {
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
    safetyMargin,
    maxTtlMs: checkWhole('maxTtlMs', options.maxTtlMs ?? 3_600_000, 1, MAX_TTL_MS),
    maxWaitMs: checkWhole('maxWaitMs', options.maxWaitMs ?? MAX_WAIT_MS, 0, MAX_WAIT_MS),
    maxWaiters: checkWhole('maxWaiters', options.maxWaiters ?? 1_000, 1, 1_000_000),
    fallbackPollMs: checkWhole('fallbackPollMs', options.fallbackPollMs ?? 1_000, 1, MAX_WAIT_MS),
    reapEveryMs: checkWhole('reapEveryMs', options.reapEveryMs ?? 1_000, 1, MAX_WAIT_MS),
    meter: options.meter ?? noMeter,
  }
}

function checkWhole(option: string, value: number, min: number, max: number): number {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new RangeError(`${option} must be a whole number from ${min} to ${max}, got ${value}`)
  }
  return value
}
