import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock, Timer } from '@dlock/system'

interface PendingTimer {
  readonly dueNanos: bigint
  readonly fire: () => void
}

/** Where time begins. */
export interface ManualClockOptions {
  /** What the wall clock shows first. Default 2026-01-01T00:00:00Z. */
  readonly wallTime?: Date
  /** What the monotonic clock reads first, from 0. Default 1 hour: not 0, so that nobody leans on it. */
  readonly monotonicNanos?: bigint
}

/**
 * A clock whose time passes only when a test says so. The three clocks move together with
 * `advance`, and apart with `suspend` (the machine slept) and `jumpWall` (somebody set the time).
 *
 * Timers fire in the order in which they are due, and those due at the same instant in the order
 * in which they were set. Between two instants the promise chains of the first one settle, so that
 * what a timer starts may set the next timer. Chains that wait for real I/O (a socket, a file) do
 * not settle in time: wait for their own signal.
 */
export class ManualClock implements Clock {
  #monotonicNanos: bigint
  #bootNanos: bigint
  #wallNanos: bigint
  #advancing = false
  /** In the order of setting, which is the order of equals. */
  readonly #timers = new Set<PendingTimer>()

  constructor(options: ManualClockOptions = {}) {
    const wallTime = options.wallTime ?? new Date('2026-01-01T00:00:00Z')
    this.#monotonicNanos = options.monotonicNanos ?? 3_600_000_000_000n
    this.#bootNanos = this.#monotonicNanos
    this.#wallNanos = BigInt(wallTime.getTime()) * 1_000_000n
  }

  monotonicNanos(): bigint {
    return this.#monotonicNanos
  }

  bootNanos(): bigint {
    return this.#bootNanos
  }

  now(): Date {
    return new Date(Number(this.#wallNanos / 1_000_000n))
  }

  setTimer(delayMs: number, fire: () => void): Timer {
    const timer = { dueNanos: this.#monotonicNanos + toNanos(Math.max(delayMs, 0)), fire }
    this.#timers.add(timer)
    return { cancel: () => void this.#timers.delete(timer) }
  }

  /** How many timers are set and neither fired nor cancelled: 0 shows that nothing beats on. */
  get pendingTimers(): number {
    return this.#timers.size
  }

  /**
   * Moves all three clocks forward by `ms` (from 0; fractions are kept to the nanosecond), firing
   * on the way what is due. `advance(0)` only lets promise chains settle and fires what is due now.
   *
   * What a timer throws is thrown here, with the clock at that timer's instant.
   *
   * @throws Error when another `advance` is under way: the test forgot an `await`
   */
  async advance(ms: number): Promise<void> {
    if (this.#advancing) throw new Error('advance() is under way already: await it first')
    this.#advancing = true
    try {
      const end = this.#monotonicNanos + toNanos(ms)
      await nextTurn()
      for (let due = this.#nextDue(end); due !== undefined; due = this.#nextDue(end)) {
        this.#moveTo(due.dueNanos)
        this.#timers.delete(due)
        due.fire()
        await nextTurn()
      }
      this.#moveTo(end)
    } finally {
      this.#advancing = false
    }
  }

  /**
   * The machine sleeps for `ms`: the boot clock and the wall clock count it, the monotonic clock
   * and its timers do not (decision 10).
   */
  suspend(ms: number): void {
    const nanos = toNanos(ms)
    this.#bootNanos += nanos
    this.#wallNanos += nanos
  }

  /** Somebody sets the wall clock: forward by `ms`, or back when it is negative. */
  jumpWall(ms: number): void {
    this.#wallNanos += ms < 0 ? -toNanos(-ms) : toNanos(ms)
  }

  #nextDue(end: bigint): PendingTimer | undefined {
    let first: PendingTimer | undefined
    for (const timer of this.#timers) {
      if (timer.dueNanos > end) continue
      if (first === undefined || timer.dueNanos < first.dueNanos) first = timer
    }
    return first
  }

  #moveTo(monotonicNanos: bigint): void {
    const step = monotonicNanos - this.#monotonicNanos
    if (step <= 0n) return
    this.#monotonicNanos += step
    this.#bootNanos += step
    this.#wallNanos += step
  }
}

function toNanos(ms: number): bigint {
  if (!Number.isFinite(ms) || ms < 0) {
    throw new RangeError(`ms must be a finite number from 0, got ${ms}`)
  }
  const whole = Math.trunc(ms)
  return BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1_000_000))
}
