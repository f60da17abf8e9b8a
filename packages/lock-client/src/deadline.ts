import type { Clock } from '@dlock/system'

/**
 * The arithmetic of "until when is it mine" (FR-11, decision 10). A lease's deadline is an instant
 * on a `LeaseClock`, just before the request left, plus the granted lease × (1 − margin). Neither
 * the answer's arrival nor any wall clock has a part in it.
 */
export const DEFAULT_SAFETY_MARGIN = 0.3

const NANOS_PER_MS = 1_000_000n

/**
 * The boot clock is read from the kernel in steps of 10 ms, so two readings may seem up to that
 * much further apart than they are. A difference below this is not a suspension.
 */
const BOOT_CLOCK_SLACK_NANOS = 20n * NANOS_PER_MS

/**
 * Running time plus suspended time: the monotonic clock, moved forward by every suspension that
 * the boot clock shows. An instant on it has passed as soon as *either* clock says that it has.
 *
 * An instant taken before a suspension was noticed is earlier than it need be, which makes a
 * deadline shorter and never longer; only whoever asks whether a deadline *has* passed must look
 * (`notice`) first. Looking costs a system call of some microseconds.
 */
export class LeaseClock {
  readonly #clock: Clock
  #suspendedNanos = 0n
  #bootAheadNanos: bigint

  constructor(clock: Clock) {
    this.#clock = clock
    this.#bootAheadNanos = clock.bootNanos() - clock.monotonicNanos()
  }

  /** Now, as far as suspensions have been noticed. */
  instant(): bigint {
    return this.#clock.monotonicNanos() + this.#suspendedNanos
  }

  /** Now, having looked for a suspension. */
  notice(): bigint {
    const aheadNanos = this.#clock.bootNanos() - this.#clock.monotonicNanos()
    const sleptNanos = aheadNanos - this.#bootAheadNanos
    if (sleptNanos > BOOT_CLOCK_SLACK_NANOS) {
      this.#suspendedNanos += sleptNanos
      this.#bootAheadNanos = aheadNanos
    }
    return this.instant()
  }

  /** `instant` as a reading of the monotonic clock, as a handle's `clientDeadlineNanos` is one. */
  toMonotonic(instant: bigint): bigint {
    return instant - this.#suspendedNanos
  }
}

/**
 * A lease as its holder counts it: of the granted length only × (1 − margin), from just before the
 * request that got it left. It is only ever prolonged; an answer that was overtaken changes nothing.
 */
export class Lease {
  readonly #margin: number
  #sentAt: bigint
  #countedNanos: bigint

  /**
   * @param sentAt instant on a `LeaseClock`, just before the request left
   * @param grantedMs what was granted, which may be more than what was asked for
   * @param margin from 0 to below 1
   */
  constructor(sentAt: bigint, grantedMs: number, margin: number) {
    this.#margin = margin
    this.#sentAt = sentAt
    this.#countedNanos = countedNanos(grantedMs, margin)
  }

  /** From here on it counts as over. */
  get endsAt(): bigint {
    return this.#sentAt + this.#countedNanos
  }

  /** How often it is renewed: a third of it, which leaves two more tries before the end. */
  get periodNanos(): bigint {
    return this.#countedNanos / 3n
  }

  /** When it is due to be renewed. */
  get renewAt(): bigint {
    return this.#sentAt + this.periodNanos
  }

  /** A renewal that left at `sentAt` was granted. One that failed has no way in. */
  prolong(sentAt: bigint, grantedMs: number): void {
    const counted = countedNanos(grantedMs, this.#margin)
    if (sentAt + counted <= this.endsAt) return
    this.#sentAt = sentAt
    this.#countedNanos = counted
  }
}

/** How much of a lease counts, in nanoseconds, rounded down. */
function countedNanos(grantedMs: number, margin: number): bigint {
  const millionths = BigInt(Math.floor((1 - margin) * 1_000_000))
  return (BigInt(grantedMs) * NANOS_PER_MS * millionths) / 1_000_000n
}

/**
 * @throws TypeError when `margin` is not a number
 * @throws RangeError when it is not from 0 to below 1
 */
export function checkSafetyMargin(margin: number): number {
  if (typeof margin !== 'number') {
    throw new TypeError(`safetyMargin must be a number, got ${typeof margin}`)
  }
  if (!(margin >= 0 && margin < 1)) {
    throw new RangeError(`safetyMargin must be from 0 to below 1, got ${margin}`)
  }
  return margin
}

export function toNanos(ms: number): bigint {
  return BigInt(Math.round(ms * 1_000_000))
}

export function toMs(nanos: bigint): number {
  return Number(nanos) / 1_000_000
}
