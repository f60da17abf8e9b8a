import type { Clock, Timer } from '@dlock/system'

/**
 * How long a lock that was lost cannot have been granted to another yet.
 *
 * The client calls a lock lost while the margin of its lease is still ahead: nobody else gets it
 * before that is over. But the loss may be *noticed* late, when this process had no turn or the
 * machine was suspended. So the time is counted from the last instant at which the lock was seen
 * to be held, by the monotonic and by the boot-time clock.
 */
export class LastHeld {
  readonly #checkStillHeld: () => void
  readonly #marginMs: number
  readonly #clock: Clock
  #timer: Timer | undefined
  #monotonicNanos: bigint
  #bootNanos: bigint

  /**
   * @param checkStillHeld throws when the lock is lost
   * @param marginMs of the lease, that the client does not count on
   */
  constructor(checkStillHeld: () => void, marginMs: number, clock: Clock) {
    this.#checkStillHeld = checkStillHeld
    this.#marginMs = marginMs
    this.#clock = clock
    this.#monotonicNanos = clock.monotonicNanos()
    this.#bootNanos = clock.bootNanos()
    this.#look()
  }

  /** Milliseconds; below 0 when it may be another's already. */
  safeForMs(): number {
    const running = this.#clock.monotonicNanos() - this.#monotonicNanos
    const all = this.#clock.bootNanos() - this.#bootNanos
    return this.#marginMs - Number(running > all ? running : all) / 1e6
  }

  stop(): void {
    this.#timer?.cancel()
  }

  #look(): void {
    const monotonicNanos = this.#clock.monotonicNanos()
    const bootNanos = this.#clock.bootNanos()
    try {
      this.#checkStillHeld()
    } catch {
      return
    }
    this.#monotonicNanos = monotonicNanos
    this.#bootNanos = bootNanos
    this.#timer = this.#clock.setTimer(this.#marginMs / 20, () => this.#look())
  }
}
