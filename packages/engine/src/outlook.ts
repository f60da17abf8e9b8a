import type { RetryableLockError } from '@dlock/lock-api'
import type { Clock, Random } from '@dlock/system'
import { backoffMs, msBetween, nanosOf } from './durations.ts'

/** How long one process may hand a key on among its own waiters before others get a chance. */
const STREAK_NANOS = nanosOf(1_000)

/**
 * What the waiters of one key know about it between two questions to the store: is it worth asking,
 * not before when, and what was the store's last word.
 */
export class Outlook {
  readonly #clock: Clock
  readonly #random: Random
  #maybeFree = true
  /** The store is not asked before this: back-off, or a head start for other processes. */
  #notBeforeNanos = 0n
  /** In a row: questions without a decision, or refused although the key had looked free. */
  #misses = 0
  #heldAtNanos: bigint | undefined
  #failure: RetryableLockError | undefined
  #freedAtNanos: bigint | undefined
  #streakSinceNanos: bigint | undefined

  constructor(clock: Clock, random: Random) {
    this.#clock = clock
    this.#random = random
  }

  get maybeFree(): boolean {
    return this.#maybeFree
  }

  /** The store's last word was that another holds the key. */
  get held(): boolean {
    return this.#heldAtNanos !== undefined && this.#failure === undefined
  }

  /** The store has not answered any question yet. */
  get isBlank(): boolean {
    return this.#heldAtNanos === undefined && this.#failure === undefined
  }

  /** Why the last question got no decision, if it did not. */
  get failure(): RetryableLockError | undefined {
    return this.#failure
  }

  /** How long to leave the store alone; 0 or less: not at all. */
  get pauseMs(): number {
    return msBetween(this.#clock.monotonicNanos(), this.#notBeforeNanos)
  }

  /** "Held" was the store's last word, or was said at least once since `sinceNanos`. */
  heldSince(sinceNanos: bigint): boolean {
    if (this.#heldAtNanos === undefined) return false
    return this.#failure === undefined || this.#heldAtNanos >= sinceNanos
  }

  /** The store is about to be asked: whatever frees the key from now on makes it `maybeFree`. */
  asking(): void {
    this.#maybeFree = false
  }

  /** Something may have freed the key, now. */
  freed(headStartMs = 0): void {
    this.#maybeFree = true
    this.#freedAtNanos ??= this.#clock.monotonicNanos()
    if (headStartMs > 0) this.#leaveAlone(headStartMs)
  }

  /** Worth asking again, though nothing was heard. */
  mayBeFree(): void {
    this.#maybeFree = true
  }

  /** Free by one answer, held by the next: once is somebody quicker, more often is a crowd. */
  contradicted(): void {
    this.#maybeFree = true
    this.#misses += 1
    if (this.#misses > 1) this.#leaveAlone(backoffMs(this.#random, this.#misses))
  }

  /** Granted to a call of this process. */
  granted(): void {
    this.#heldAtNanos = this.#clock.monotonicNanos()
    this.#failure = undefined
    this.#misses = 0
  }

  /** Refused: another holds it, so what this process handed on among its own has ended. */
  refused(): void {
    this.#heldAtNanos = this.#clock.monotonicNanos()
    this.#failure = undefined
    this.#freedAtNanos = undefined
    this.#streakSinceNanos = undefined
  }

  /** Held, and known until when. */
  stillHeld(): void {
    this.#heldAtNanos = this.#clock.monotonicNanos()
    this.#failure = undefined
    this.#misses = 0
  }

  /** The store could not decide. */
  failed(failure: RetryableLockError): void {
    this.#maybeFree = true
    this.#failure = failure
    this.#leaveAlone(failure.retryAfterMs ?? backoffMs(this.#random, this.#misses))
    this.#misses += 1
  }

  /** When the release became known that a grant now answers; once. */
  takeFreedAt(): bigint | undefined {
    const freedAt = this.#freedAtNanos
    this.#freedAtNanos = undefined
    return freedAt
  }

  /**
   * To be asked at each release in this process while others wait here.
   *
   * @returns true when this process has handed the key on for long enough, so that the waiters of
   *   other processes, which see no gap between two transfers, should have a chance
   */
  mustYield(): boolean {
    const now = this.#clock.monotonicNanos()
    this.#streakSinceNanos ??= now
    if (now - this.#streakSinceNanos <= STREAK_NANOS) return false
    this.#streakSinceNanos = undefined
    return true
  }

  #leaveAlone(ms: number): void {
    const until = this.#clock.monotonicNanos() + nanosOf(ms)
    if (until > this.#notBeforeNanos) this.#notBeforeNanos = until
  }
}
