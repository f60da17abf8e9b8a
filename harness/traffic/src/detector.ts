import type { LockHandle } from '@dlock/lock-api'
import type { Clock } from '@dlock/system'
import type { Cell } from './cell.ts'

/** So many violations are kept in words; all are counted. */
const KEPT = 20

/**
 * The violation detector. Each critical section writes owner and token to a cell behind a guard and
 * finds them there again at its end. It counts **effects**, not beliefs:
 *
 * - a holder before its deadline was refused, or overwritten: two could change the resource;
 * - a token came with two owners;
 * - the cell went back to a lower token: the guard itself is broken.
 *
 * A holder past its deadline may be refused and overwritten: that is the paused worker, and the
 * guard at work (`fencedOut`). It is no violation, and neither is that two believed to hold.
 */
export class Detector {
  readonly #cell: Cell
  readonly #clock: Clock
  readonly #kept: string[] = []
  #violations = 0
  #fencedOut = 0

  constructor(cell: Cell, clock: Clock) {
    this.#cell = cell
    this.#clock = clock
  }

  /** Must be 0, or no figure of the run may be quoted. */
  get violations(): number {
    return this.#violations
  }

  /** The first of them, in words. */
  get described(): readonly string[] {
    return this.#kept
  }

  /** How often the guard refused a holder that was too late. */
  get fencedOut(): number {
    return this.#fencedOut
  }

  /** The beginning of a critical section. `false`: fenced out, so there is none. */
  async enter(lock: LockHandle): Promise<boolean> {
    const { key, ownerId: owner, fencingToken: token } = lock
    const { accepted, before } = await this.#cell.write(key, { owner, token })
    if (before?.token === token && before.owner !== owner) {
      this.#violation(`${key}: token ${token} was ${before.owner}'s and is ${owner}'s`)
    }
    if (accepted) return true
    if (this.#isInTime(lock)) {
      this.#violation(`${key}: ${owner} holds ${token} and is refused, by ${before?.token}`)
    } else {
      this.#fencedOut += 1
    }
    return false
  }

  /** The end of a critical section, before the lock is released. */
  async leave(lock: LockHandle): Promise<void> {
    const { key, ownerId: owner, fencingToken: token } = lock
    const found = await this.#cell.read(key)
    if (found?.owner === owner && found.token === token) return
    const what = `${key}: ${owner} wrote ${token} and finds ${found?.token} of ${found?.owner}`
    if (found === undefined || found.token <= token || this.#isInTime(lock)) this.#violation(what)
    else this.#fencedOut += 1
  }

  /** Asked after the answer: what was so before the deadline was seen before it. */
  #isInTime({ clientDeadlineNanos }: LockHandle): boolean {
    return this.#clock.monotonicNanos() < clientDeadlineNanos
  }

  #violation(what: string): void {
    this.#violations += 1
    if (this.#kept.length < KEPT) this.#kept.push(what)
  }
}
