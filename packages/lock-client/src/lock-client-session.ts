import { ContentionError, type LockHandle, SessionDeadError } from '@dlock/lock-api'
import type { AcquireContext } from './acquire-call.ts'
import { type AcquireOptions, checkAcquire, checkNeedMs } from './acquire-options.ts'
import { Acquiring } from './acquiring.ts'
import { retry } from './backoff.ts'
import { LeaseTooShortError, LockNotGrantedError } from './client-errors.ts'
import { type Lease, toMs } from './deadline.ts'
import { Heartbeat } from './heartbeat.ts'
import type { HeldLock } from './held-lock.ts'
import { HeldLocks } from './held-locks.ts'
import { closeSessionHop, renewHop, timeoutMsOf } from './hops.ts'
import { type LockLostListener, Losses } from './losses.ts'
import type { Reports } from './reports.ts'

/**
 * What `using` came to. It has to be looked at before there is a value: `granted: false` means that
 * the lock was another's and **the work was not done** (FR-27).
 */
export type UsingResult<T> =
  | { readonly granted: true; readonly value: T }
  | { readonly granted: false }

/** A lock for the length of a block: `await using held = await session.hold(key)`. */
export interface Hold extends AsyncDisposable {
  readonly lock: LockHandle
  /** Aborts when the lock is lost, with the `LockLostError` as its reason. */
  readonly lost: AbortSignal
}

/** What a session is made of. */
export interface SessionParts extends AcquireContext {
  readonly lease: Lease
  readonly reports: Reports
  readonly onClosed: (session: LockClientSession) => void
}

/**
 * One session and its heartbeat, the locks on it, and their deadlines. Opened by
 * `LockClient.openSession`, closed by `close` or `await using`, which releases every lock on it.
 *
 * Tasks of one process may share it: two that want one key exclude each other, in the order in
 * which they asked. When it dies (its lease is over, or the service says so) every lock on it is
 * lost and it stays dead: open another.
 *
 * **Not promised**: that a check, a signal or a listener stops a write that was already sent, or
 * that a paused process hears anything while it is paused. They help a holder to stop in time; what
 * keeps a late write out is the resource's guard, which needs the token.
 */
export class LockClientSession implements AsyncDisposable {
  readonly #parts: SessionParts
  readonly #losses: Losses
  readonly #locks: HeldLocks
  readonly #heartbeat: Heartbeat
  readonly #acquiring: Acquiring
  /** Why nothing can be acquired any more. */
  #ended: SessionDeadError | undefined
  /** The service said that the session is dead: there is nothing left to close. */
  #gone = false
  #closing: Promise<void> | undefined

  /** By `LockClient.openSession` only. */
  constructor(parts: SessionParts) {
    this.#parts = parts
    const { clock, lease, leaseClock, spent, reports } = parts
    this.#losses = new Losses(reports)
    this.#locks = new HeldLocks({
      clock,
      leaseClock,
      sessionLease: lease,
      spent,
      losses: this.#losses,
      onSessionOver: () => this.#die(new SessionDeadError('expired')),
    })
    this.#heartbeat = new Heartbeat({
      ...parts,
      locks: this.#locks,
      onSessionDead: (error) => this.#diedAtService(error),
    })
    this.#heartbeat.dueBy(lease.renewAt)
    this.#acquiring = new Acquiring({
      ...parts,
      locks: this.#locks,
      onHeld: (lock) => this.#heartbeat.dueBy(lock.lease.renewAt),
      onSessionDead: (error) => this.#diedAtService(error),
    })
  }

  get ownerId(): string {
    return this.#parts.session.ownerId
  }

  /**
   * Acquires `key`, waiting up to `options.maxWaitMs` for another holder to go away. From then on
   * the lock is renewed in the background until it is released or lost.
   *
   * @returns a handle, whose `clientDeadlineNanos` is as of now; or `undefined`: **not mine, do not
   *   proceed**. An expected outcome; not to be retried in a tight loop.
   * @throws the signal's reason when it aborts: then a grant that was recorded already was released
   *   before, as far as the service could be reached within 2.5 s; otherwise nobody renews it
   * @throws ContentionError, NotLeaderError when there was no decision in time, five retries
   *   included. Another acquire may follow; a grant that the unanswered one left behind is adopted
   *   by it, or ends with its lease.
   * @throws SessionDeadError when this session is dead or closed
   * @throws TypeError, RangeError for a bad argument
   */
  async acquire(key: string, options: AcquireOptions = {}): Promise<LockHandle | undefined> {
    const lock = await this.#acquiring.acquire(checkAcquire(key, options))
    return lock?.handle
  }

  /**
   * Renews the lock, and the session, now. The heartbeat does it anyway; this is for a holder that
   * wants a whole lease ahead of it.
   *
   * @returns the same grant with its new deadline. Handles that were given out before stay good.
   * @throws LockLostError when it is lost: now, for good
   * @throws ContentionError, NotLeaderError when nothing is known, after one retry. Nothing is lost
   *   by it: the deadline stands where it was.
   */
  async renew(handle: LockHandle): Promise<LockHandle> {
    const lock = this.#locks.check(handle)
    const { retries } = renewHop
    const limits = { retries, withinMs: timeoutMsOf(renewHop), keepAlive: renewHop.awaited }
    try {
      await retry(this.#parts, limits, () => this.#renew(lock))
    } catch (error) {
      if (!(error instanceof SessionDeadError)) throw error
      this.#diedAtService(error)
    }
    return this.#locks.check(handle).handle
  }

  /**
   * Releases the lock. From the call on it is neither renewed nor lost, and the next task of this
   * session in line for the key has its turn when the answer is there.
   *
   * @returns `false` when the grant was gone already, or was released before
   * @throws LockLostError when the lock is known to be lost: without a round trip
   * @throws ContentionError, NotLeaderError when it is not known whether it was released. Not
   *   retried by itself; a second call tries again. At worst the grant ends with its lease.
   */
  async release(handle: LockHandle): Promise<boolean> {
    const known = this.#locks.find(handle)
    if (known?.state === 'lost') this.#losses.forget(known)
    // A machine that slept meanwhile is of no interest to who lets go: that saves a system call.
    const now = this.#parts.leaseClock.instant()
    const lock = known?.state === 'released' ? known : this.#locks.check(handle, now)
    if (lock.releasing !== undefined) {
      await lock.releasing
      return false
    }
    lock.releasing = this.#release(lock)
    try {
      return await lock.releasing
    } catch (error) {
      lock.releasing = undefined
      throw error
    }
  }

  /**
   * Does `work` while holding the lock, and releases it afterwards, come what may. `lost` aborts
   * when the lock is lost; pass it on, and stop. It waits for `work` to end even then.
   *
   * @returns `work`'s value, or `granted: false` when the lock was another's and nothing was done.
   *   The value is returned even when the release failed; that goes to `onError`.
   * @throws what `work` throws; else `LockLostError` when the lock was lost before `work` ended
   * @throws as `acquire`; then `work` was not begun
   */
  async using<T>(
    key: string,
    options: AcquireOptions,
    work: (lock: LockHandle, lost: AbortSignal) => T | Promise<T>,
  ): Promise<UsingResult<T>> {
    const lock = await this.#acquiring.acquire(checkAcquire(key, options))
    if (lock === undefined) return { granted: false }
    try {
      const value = await work(lock.handle, lock.lost)
      if (lock.state === 'held') this.#locks.check(lock.handle)
      if (lock.loss !== undefined) throw lock.loss
      return { granted: true, value }
    } finally {
      await this.#giveBack(lock)
    }
  }

  /**
   * `acquire` for the length of a block: `await using held = await session.hold(key)`. Leaving the
   * block releases the lock, and never throws, so that an error of the block is seen as it is; a
   * release that failed goes to `onError`. **A loss does not end the block by itself**: pass
   * `held.lost` on, and end with `checkStillHeld(held.lock)`.
   *
   * @throws LockNotGrantedError when the lock is another's
   * @throws as `acquire`
   */
  async hold(key: string, options: AcquireOptions = {}): Promise<Hold> {
    const lock = await this.#acquiring.acquire(checkAcquire(key, options))
    if (lock === undefined) throw new LockNotGrantedError(key)
    return {
      lock: lock.handle,
      lost: lock.lost,
      [Symbol.asyncDispose]: () => this.#giveBack(lock),
    }
  }

  /**
   * Returns when the lock is held as far as this process can tell, by its own clocks and without a
   * round trip; throws otherwise. There is no boolean, because an `if` without an `else` would skip
   * a side effect in silence (FR-13). A liveness aid: only the resource's guard is safe.
   *
   * @param options.needMs how long the next step takes: do not start what cannot finish in the lease
   * @throws LockLostError when it is lost, was released, or is not of this session
   * @throws LeaseTooShortError when it is held, but not for `needMs` more
   */
  checkStillHeld(handle: LockHandle, options: { readonly needMs?: number } = {}): void {
    const { needMs } = options
    if (needMs !== undefined) checkNeedMs(needMs)
    const lock = this.#locks.check(handle)
    if (needMs === undefined) return
    const leftMs = toMs(this.#locks.endsAt(lock) - this.#parts.leaseClock.instant())
    if (leftMs >= needMs) return
    throw new LeaseTooShortError(handle.key, handle.fencingToken, needMs, leftMs)
  }

  /**
   * `checkStillHeld`, with the service asked as well: by renewing, which is the one question that
   * it answers with authority. As stale as every answer once it is there.
   *
   * @throws as `checkStillHeld` and `renew`
   */
  async confirmStillHeld(
    handle: LockHandle,
    options: { readonly needMs?: number } = {},
  ): Promise<void> {
    this.checkStillHeld(handle)
    await this.renew(handle)
    this.checkStillHeld(handle, options)
  }

  /** Aborts when the lock is lost, with the loss as its reason: at once when it is lost already. */
  lostSignal(handle: LockHandle): AbortSignal {
    const lock = this.#locks.find(handle)
    return (lock ?? this.#locks.check(handle)).lost
  }

  /**
   * `listener` is called once for each lock of this session that is lost from now on (FR-12), and
   * at once for each that was lost already and whose holder has not let go of it since: by
   * `release`, or by the end of its `using` or `hold`. A release is not a loss, nor is the close of
   * the session.
   *
   * @returns how to stop listening
   */
  onLockLost(listener: LockLostListener): () => void {
    return this.#losses.listen(listener)
  }

  /**
   * Ends the session: releases every lock on it, gives up what waits, stops the heartbeat. A lock
   * that somebody still counts on aborts its `lost`. Idempotent and bounded by a few seconds; never
   * rejects: when the service cannot be reached that goes to `onError`, and the session ends with
   * its lease.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #renew(lock: HeldLock): Promise<void> {
    const { transport, session, leaseClock } = this.#parts
    const { handle, ttlMs } = lock
    const patience = { hop: renewHop, timeoutMs: timeoutMsOf(renewHop) }
    const sentAt = leaseClock.instant()
    const answer = await transport.heartbeat(session, [{ handle, ttlMs }], patience)
    this.#locks.heartbeatAnswered(sentAt, answer)
    const [renewed] = answer.renewed
    if (lock.state !== 'held') return
    if (renewed === undefined) {
      throw new ContentionError('nobody knows whether the lock was renewed')
    }
    lock.reissue(leaseClock.toMonotonic(this.#locks.endsAt(lock)), renewed.serverExpiry)
    this.#locks.remember(lock)
  }

  async #release(lock: HeldLock): Promise<boolean> {
    const { transport, spent, leaseClock } = this.#parts
    this.#locks.letGo(lock)
    try {
      return await transport.release(lock.handle)
    } catch (error) {
      if (error instanceof SessionDeadError) {
        this.#diedAtService(error)
        return false
      }
      spent.add(lock.handle, lock.ttlMs, leaseClock.instant())
      throw error
    } finally {
      lock.turn.leave()
    }
  }

  /** The holder is done. Whatever comes of the release, it is not the holder's to hear. */
  async #giveBack(lock: HeldLock): Promise<void> {
    this.#losses.forget(lock)
    if (lock.state === 'lost') return
    try {
      await this.release(lock.handle)
    } catch (error) {
      this.#parts.reports.error(error, 'release')
    }
  }

  /** The service said so. */
  #diedAtService(error: SessionDeadError): void {
    this.#gone = true
    this.#die(error)
  }

  #die(error: SessionDeadError): void {
    if (this.#ended !== undefined) return
    this.#end(error, 'its session is dead', { announced: true })
    this.#parts.reports.sessionLost(this.ownerId)
  }

  #end(error: SessionDeadError, why: string, options: { readonly announced: boolean }): void {
    this.#ended = error
    this.#heartbeat.stop()
    this.#acquiring.end(error)
    this.#locks.loseAll(why, options)
  }

  async #close(): Promise<void> {
    const { transport, session, reports, onClosed } = this.#parts
    if (this.#ended === undefined) {
      this.#end(new SessionDeadError('unknown'), 'its session was closed', { announced: false })
    }
    const { retries, readMs: withinMs } = closeSessionHop
    try {
      if (!this.#gone) {
        await retry(this.#parts, { retries, withinMs, keepAlive: true }, () =>
          transport.closeSession(session),
        )
      }
    } catch (error) {
      reports.error(error, 'close')
    } finally {
      onClosed(this)
    }
  }
}
