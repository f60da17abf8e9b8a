import {
  type AuditedRevocation,
  ContentionError,
  checkFencingToken,
  checkKey,
  checkOperator,
  checkOwnerId,
  checkReason,
  checkSessionId,
  checkTtlMs,
  grantedTtlMs,
  type ListingCapability,
  type LockHandle,
  type LockInfo,
  type LockService,
  type LockStore,
  type SessionRegistry,
  type SessionScope,
  type SessionState,
  type TokenCapability,
  type Unsubscribe,
} from '@dlock/lock-api'
import type { Timer } from '@dlock/system'
import type { EngineOptions } from './engine-options.ts'
import { type EngineParts, engineParts } from './engine-parts.ts'
import type { LockEvent } from './lock-event.ts'
import { revokeThrough } from './revocation.ts'
import { SessionBound } from './session-bound.ts'

/** The longest that `close` waits for calls that are on their way to the store. */
const CLOSE_WITHIN_MS = 10_000

/** A key that nobody needs to hold: reading it shows that the store answers. */
const PROBE_KEY = 'dlock:probe'

/**
 * A lock service over one store, in this process. See the package's comment for how it works.
 * Everything is safe to call concurrently. It does not own the store: close the engine first.
 */
export class LockEngine implements SessionRegistry, SessionScope, AsyncDisposable {
  /** The store's name for metric labels. */
  readonly backendId: string
  /** The store's lists for operators, if it has any. */
  readonly listing: ListingCapability | undefined
  /** The counter behind the tokens, if the store shows it. */
  readonly tokens: TokenCapability | undefined
  readonly #store: LockStore & SessionRegistry
  readonly #parts: EngineParts
  #starting: Promise<Unsubscribe> | undefined
  #closing: Promise<void> | undefined

  /** @throws RangeError that names the option, its value and its range */
  constructor(options: EngineOptions) {
    this.#parts = engineParts(options)
    this.#store = options.store
    this.backendId = options.store.backendId()
    this.listing = this.#parts.capabilities.listing
    this.tokens = this.#parts.capabilities.tokens
  }

  /**
   * Subscribes to the store's announcements and starts sweeping. Idempotent; after a failure it can
   * be called again. Every call works without it, but then waiting polls, nothing is swept, and
   * `lease_expired` and `session_expired` are mostly not noticed.
   *
   * @throws ContentionError, NotLeaderError when the store cannot be reached
   */
  async start(): Promise<void> {
    if (this.#closing !== undefined) throw new ContentionError('the engine is closed')
    this.#starting ??= this.#start()
    try {
      await this.#starting
    } catch (error) {
      this.#starting = undefined
      throw error
    }
  }

  /**
   * Ends all waiting: waiting calls reject with `ContentionError`, and so does every later acquire.
   * What is on its way to the store is awaited, for at most 10 s, so that no grant is left behind.
   * Sessions and grants live on; renewals, releases and heartbeats still work. Idempotent.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /** As `close`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /**
   * As `SessionRegistry.openSession`.
   *
   * @param ttlMs from 1 to `maxTtlMs`
   */
  async openSession(ownerId: string, ttlMs: number): Promise<string> {
    checkOwnerId(ownerId)
    checkTtlMs(ttlMs, 'ttlMs', this.#parts.settings.maxTtlMs)
    return this.#parts.sessions.open(ownerId, ttlMs)
  }

  /**
   * As `SessionRegistry.heartbeat`. `false` also ends the session's waits in this process.
   *
   * @param ttlMs from 1 to `maxTtlMs`
   */
  async heartbeat(sessionId: string, ttlMs: number): Promise<boolean> {
    checkSessionId(sessionId)
    checkTtlMs(ttlMs, 'ttlMs', this.#parts.settings.maxTtlMs)
    return this.#parts.sessions.heartbeat(sessionId, ttlMs)
  }

  /**
   * As `SessionRegistry.closeSession`. Also ends the session's waits in this process: they reject
   * with `SessionDeadError`.
   */
  async closeSession(sessionId: string): Promise<number> {
    return this.#parts.sessions.close(checkSessionId(sessionId))
  }

  /** As `SessionRegistry.locksOf`: advisory. */
  async locksOf(sessionId: string): Promise<ReadonlySet<string>> {
    return this.#store.locksOf(checkSessionId(sessionId))
  }

  /**
   * Whose a session is and how long it lives, as of its last heartbeat here, or else by the store.
   * Advisory: a session that was closed by another process may be called live until its time is
   * over. `unknown` also when the store cannot tell and this process does not know.
   */
  async describeSession(sessionId: string): Promise<SessionState> {
    return this.#parts.sessions.describe(checkSessionId(sessionId))
  }

  /**
   * The contract for one session: every call is made for it, `ownerId` must be its owner's (else
   * `RangeError`), and `renew` and `release` take only its own handles (else `RangeError`).
   */
  forSession(sessionId: string): LockService {
    const { acquire, settings } = this.#parts
    return new SessionBound({
      ...settings,
      sessionId: checkSessionId(sessionId),
      engine: this,
      acquire,
      renew: ({ key, fencingToken }) =>
        this.#parts.renewal.renew(sessionId, key, fencingToken, undefined),
      release: ({ key, fencingToken, ownerId }) =>
        this.#parts.handOff.release(key, fencingToken, ownerId),
    })
  }

  /**
   * `renew` by (key, token), for a caller who holds no handle.
   *
   * @param ttlMs from 1 to `maxTtlMs`
   * @returns `undefined`: lost, or not a grant of this session
   */
  async renewGrant(
    sessionId: string,
    key: string,
    fencingToken: bigint,
    ttlMs: number,
  ): Promise<LockHandle | undefined> {
    checkSessionId(sessionId)
    checkKey(key)
    checkFencingToken(fencingToken)
    checkTtlMs(ttlMs, 'ttlMs', this.#parts.settings.maxTtlMs)
    return this.#parts.renewal.renew(sessionId, key, fencingToken, ttlMs)
  }

  /**
   * `release` by (key, token), for a caller who holds no handle; a waiter here gets the key next.
   *
   * @param sessionId when given, a grant that this process knows to be another session's stays:
   *   `false`; so does one that it did not make, at the price of a read, if its owner is not the
   *   session's. The store itself compares (key, token) and nothing else
   */
  async releaseGrant(
    sessionId: string | undefined,
    key: string,
    fencingToken: bigint,
  ): Promise<boolean> {
    checkKey(key)
    checkFencingToken(fencingToken)
    const { grants, handOff, sessions } = this.#parts
    if (sessionId === undefined) return handOff.release(key, fencingToken, undefined)
    checkSessionId(sessionId)
    const ownerId = sessions.ownerOf(sessionId)
    const known = grants.find(key, fencingToken)
    if (known !== undefined) {
      if (known.sessionId !== sessionId) return false
    } else {
      // A (key, token) has one owner for ever, so that even a stale answer is right about it.
      const info = await this.#store.read(key)
      if (info?.fencingToken === fencingToken && info.ownerId !== ownerId) return false
    }
    return handOff.release(key, fencingToken, ownerId)
  }

  /** As `LockService.inspect`; `waiterCount` counts the calls that wait in this process. */
  async inspect(key: string): Promise<LockInfo | undefined> {
    const info = await this.#store.read(checkKey(key))
    return info?.withWaiterCount(this.#parts.queues.find(key)?.waiting ?? 0)
  }

  /**
   * As `LockService.forceRevoke`, with the audit record's name.
   *
   * @param expectedToken when given, only that grant is revoked: another is `stale`
   * @throws RangeError when `expectedToken` is given and the store cannot compare it
   */
  async revoke(
    key: string,
    operator: string,
    reason: string,
    expectedToken?: bigint,
  ): Promise<AuditedRevocation> {
    checkKey(key)
    checkOperator(operator)
    checkReason(reason)
    if (expectedToken !== undefined) checkFencingToken(expectedToken, 'expectedToken')
    const { capabilities, bookkeeping } = this.#parts
    const { audit } = capabilities
    const revocation = await revokeThrough(this.#store, audit, key, operator, reason, expectedToken)
    if (revocation.kind === 'revoked') bookkeeping.revoked(revocation.outcome, operator, reason)
    return revocation
  }

  /** The lease that is granted when `ttlMs` is asked for: never less. */
  grantedTtlMs(ttlMs: number): number {
    return grantedTtlMs(ttlMs, this.#parts.capabilities.ttlBounds)
  }

  /**
   * Resolves when grants can be made now.
   *
   * @throws ContentionError, NotLeaderError when the store cannot decide, or its tokens went
   *   backwards
   */
  async checkHealth(): Promise<void> {
    const { guard, capabilities } = this.#parts
    if (guard.stopped !== undefined) throw guard.stopped
    if (capabilities.health === undefined) await this.#store.read(PROBE_KEY)
    else await capabilities.health.checkHealth()
  }

  /** As this process knows: its live grants, the calls that wait, the sessions that it serves. */
  gauges(): { held: number; waiters: number; sessions: number } {
    const { grants, queues, sessions } = this.#parts
    return { held: grants.size, waiters: queues.waiters, sessions: sessions.size }
  }

  /**
   * Calls `listener` with every event, in the turn in which it happens, so it must be quick. What
   * it throws is ignored.
   *
   * @returns how to stop; idempotent
   */
  onEvent(listener: (event: LockEvent) => void): () => void {
    return this.#parts.events.on(listener)
  }

  async #start(): Promise<Unsubscribe> {
    const { queues, sweeper, capabilities } = this.#parts
    const unsubscribe = await capabilities.waiting?.subscribe(
      (key) => queues.find(key)?.freed(),
      () => queues.freedAll(),
    )
    // What was freed before the subscription stood was announced to nobody here.
    queues.freedAll()
    if (this.#closing === undefined) sweeper.start()
    return unsubscribe ?? (async () => {})
  }

  async #close(): Promise<void> {
    const { acquire, queues, handOff, sweeper, settings } = this.#parts
    acquire.close()
    queues.refuseAll(new ContentionError('the engine was closed while this call waited'))
    const ended = Promise.allSettled([
      queues.drained().then(() => handOff.drained()),
      sweeper.stop(),
      this.#starting?.then((unsubscribe) => unsubscribe()),
    ])
    let timer: Timer | undefined
    const bound = new Promise<void>((resolve) => {
      timer = settings.clock.setTimer(CLOSE_WITHIN_MS, resolve, { keepAlive: true })
    })
    await Promise.race([ended, bound])
    timer?.cancel()
  }
}
