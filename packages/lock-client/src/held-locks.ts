import { type LockHandle, LockLostError } from '@dlock/lock-api'
import type { Clock } from '@dlock/system'
import { Alarm } from './alarm.ts'
import type { Lease, LeaseClock } from './deadline.ts'
import type { SpentTokens } from './fencing-token.ts'
import type { HeldLock } from './held-lock.ts'
import type { Losses } from './losses.ts'
import type { GrantToRenew, HeartbeatAnswer } from './transport.ts'

const LEASE_OVER = 'its lease is over by the local clock, and no renewal got through in time'
const HELD_TOO_LONG = 'it was held for as long as its holder allowed (maxHoldMs)'
const GONE = 'the service says that the grant is gone'

/**
 * The locks that a session holds, and the watch over their deadlines. A lock counts as lost when
 * its own lease is over *or* its session's is, whichever comes first: a dead session frees every
 * lock at once, and its lease may well be the shorter one.
 */
export class HeldLocks {
  readonly #leaseClock: LeaseClock
  readonly #sessionLease: Lease
  readonly #spent: SpentTokens
  readonly #losses: Losses
  readonly #onSessionOver: () => void
  readonly #alarm: Alarm
  /** By key: at most one, as the queue sees to. */
  readonly #held = new Map<string, HeldLock>()
  /** By every handle that was handed out, so that one is known for as long as it is used. */
  readonly #byHandle = new WeakMap<LockHandle, HeldLock>()
  #isOver = false

  constructor(parts: {
    readonly clock: Clock
    readonly leaseClock: LeaseClock
    readonly sessionLease: Lease
    readonly spent: SpentTokens
    readonly losses: Losses
    /** The session's own lease is over by the local clock. */
    readonly onSessionOver: () => void
  }) {
    this.#leaseClock = parts.leaseClock
    this.#sessionLease = parts.sessionLease
    this.#spent = parts.spent
    this.#losses = parts.losses
    this.#onSessionOver = parts.onSessionOver
    this.#alarm = new Alarm(parts.clock, parts.leaseClock, () => this.sweep())
    this.#alarm.ringBy(parts.sessionLease.endsAt)
  }

  add(lock: HeldLock): void {
    this.#held.set(lock.handle.key, lock)
    this.remember(lock)
    this.#alarm.ringBy(this.endsAt(lock))
  }

  /** From now on, the handle that `lock` has now is known to be of it. */
  remember(lock: HeldLock): void {
    this.#byHandle.set(lock.handle, lock)
  }

  /** From here on it counts as lost. */
  endsAt(lock: Pick<HeldLock, 'lease' | 'holdEndsAt'>): bigint {
    return earliest(lock.lease.endsAt, this.#sessionLease.endsAt, lock.holdEndsAt)
  }

  /** The lock that `handle` is of, whatever became of it. */
  find(handle: LockHandle): HeldLock | undefined {
    const known = this.#byHandle.get(handle)
    if (known !== undefined) return known
    const held = this.#held.get(handle.key)
    return held?.handle.fencingToken === handle.fencingToken ? held : undefined
  }

  /**
   * The lock that `handle` is of, when it is held `now`, which has looked at both clocks unless it
   * is given. No round trip. A loss that is noticed here is final.
   *
   * @throws LockLostError when it is not held
   */
  check(handle: LockHandle, now: bigint = this.#leaseClock.notice()): HeldLock {
    const lock = this.find(handle)
    if (lock?.state === 'held' && this.endsAt(lock) <= now) this.sweep()
    if (lock?.state === 'held') return lock
    const why = lock === undefined ? 'this session does not hold it' : 'it was released'
    throw lock?.loss ?? new LockLostError(handle.key, handle.fencingToken, why)
  }

  /** Its holder lets go: no renewal from here on, and no loss. */
  letGo(lock: HeldLock): void {
    if (lock.letGo()) this.#held.delete(lock.handle.key)
  }

  /** The session is over, and every lock is lost. @param announced whether listeners are told, or only the holders */
  loseAll(why: string, { announced }: { readonly announced: boolean }): void {
    this.#isOver = true
    this.#alarm.stop()
    for (const lock of this.#held.values()) this.#lose(lock, why, announced)
  }

  renewals(): GrantToRenew[] {
    return Array.from(this.#held.values(), ({ handle, ttlMs }) => ({ handle, ttlMs }))
  }

  /** How often the shortest lease, a lock's or the session's, is to be renewed. */
  periodNanos(): bigint {
    let period = this.#sessionLease.periodNanos
    for (const { lease } of this.#held.values()) period = earliest(period, lease.periodNanos)
    return period
  }

  /** A heartbeat that left at `sentAt` was answered. It prolongs what is not lost by now. */
  heartbeatAnswered(sentAt: bigint, answer: HeartbeatAnswer): void {
    this.sweep()
    this.#sessionLease.prolong(sentAt, answer.ttlMs)
    for (const { key, fencingToken, ttlMs } of answer.renewed) {
      const lock = this.#held.get(key)
      if (lock?.handle.fencingToken === fencingToken) lock.lease.prolong(sentAt, ttlMs)
    }
    for (const { key, fencingToken } of answer.lost) {
      const lock = this.#held.get(key)
      if (lock?.handle.fencingToken === fencingToken) this.#lose(lock, GONE)
    }
  }

  /** Looks at both clocks, and loses what is over. */
  sweep(): void {
    if (this.#isOver) return
    const now = this.#leaseClock.notice()
    if (this.#sessionLease.endsAt <= now) {
      this.#onSessionOver()
      return
    }
    let next = this.#sessionLease.endsAt
    for (const lock of this.#held.values()) {
      if (this.endsAt(lock) > now) {
        next = earliest(next, this.endsAt(lock))
        continue
      }
      // The service may have it still: what is left of the lease is its holder's time to stop.
      this.#spent.add(lock.handle, lock.ttlMs, now)
      this.#lose(lock, lock.lease.endsAt <= now ? LEASE_OVER : HELD_TOO_LONG)
    }
    this.#alarm.ringBy(next)
  }

  #lose(lock: HeldLock, why: string, announced = true): void {
    if (!lock.lose(why)) return
    this.#held.delete(lock.handle.key)
    lock.turn.leave()
    // Not from inside whatever call noticed it: the application's code runs on its own.
    queueMicrotask(() => {
      lock.signalLoss()
      if (announced) this.#losses.announce(lock)
    })
  }
}

function earliest(first: bigint, ...others: (bigint | undefined)[]): bigint {
  let least = first
  for (const other of others) if (other !== undefined && other < least) least = other
  return least
}
