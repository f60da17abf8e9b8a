import {
  checkFencingToken,
  checkKey,
  checkOperator,
  checkOwnerId,
  checkReason,
  checkTtlMs,
  type LockInfo,
} from '@dlock/lock-api'
import { type Clock, type Random, systemClock, systemRandom } from '@dlock/system'
import { type Pacing, retry } from './backoff.ts'
import { checkSafetyMargin, DEFAULT_SAFETY_MARGIN, Lease, LeaseClock } from './deadline.ts'
import { SpentTokens } from './fencing-token.ts'
import { type Hop, inspectHop, openSessionHop, timeoutMsOf } from './hops.ts'
import { InProcessTransport, type LocalService } from './in-process.ts'
import { LockClientSession } from './lock-client-session.ts'
import { type RemoteOptions, remoteTransport } from './remote.ts'
import { type ReportHooks, Reports } from './reports.ts'
import type { RevokeOutcome, Transport } from './transport.ts'

/** Where the service is, and how the client treats it. */
export type LockClientOptions = ClientOptions & (InProcessOptions | RemoteOptions)

/** The service in this process. It stays its owner's: closing the client does not close it. */
export interface InProcessOptions {
  readonly service: LocalService
}

/** What every client may be given, whatever its road to the service. */
export interface ClientOptions extends ReportHooks {
  /** The lease of a session, in whole milliseconds from 1; default 15 000. A server takes 1 000 … 60 000. */
  readonly sessionTtlMs?: number
  /**
   * The part of a lease that is not counted on, from 0 to below 1; default 0.30. It has to cover
   * how long a holder takes to stop, and how far apart the clocks' rates may be.
   */
  readonly safetyMargin?: number
  readonly clock?: Clock
  readonly random?: Random
}

const DEFAULT_SESSION_TTL_MS = 15_000

/**
 * A client of a lock service, in this process or behind an address, with the same behaviour. One
 * per process and service is enough; it opens sessions, which acquire.
 */
export class LockClient implements AsyncDisposable {
  readonly #transport: Transport
  readonly #pacing: Pacing
  readonly #reports: Reports
  readonly #sessionTtlMs: number
  readonly #safetyMargin: number
  readonly #sessions = new Set<LockClientSession>()
  #closing: Promise<void> | undefined

  /** @throws TypeError, RangeError that name the option, its value and its range */
  constructor(options: LockClientOptions) {
    const {
      sessionTtlMs = DEFAULT_SESSION_TTL_MS,
      safetyMargin = DEFAULT_SAFETY_MARGIN,
      clock = systemClock,
      random = systemRandom,
    } = options
    this.#sessionTtlMs = checkTtlMs(sessionTtlMs, 'sessionTtlMs')
    this.#safetyMargin = checkSafetyMargin(safetyMargin)
    this.#pacing = { clock, random }
    this.#reports = new Reports(options)
    this.#transport =
      'service' in options
        ? new InProcessTransport(options.service, clock)
        : remoteTransport(options, clock)
  }

  /**
   * Opens a session and keeps it alive until it is closed.
   *
   * @param ownerId who is asking, 1 to 64 characters, for people. It identifies nobody: two clients
   *   with one name exclude each other like any two
   * @throws ContentionError, NotLeaderError when the service could not be reached in time
   * @throws TypeError, RangeError for a bad argument, or when the client is closed
   */
  async openSession(ownerId: string): Promise<LockClientSession> {
    checkOwnerId(ownerId)
    this.#requireOpen()
    const leaseClock = new LeaseClock(this.#pacing.clock)
    const { sentAt, session } = await this.#retry(openSessionHop, async () => ({
      sentAt: leaseClock.notice(),
      session: await this.#transport.openSession(ownerId, this.#sessionTtlMs),
    }))
    const opened = new LockClientSession({
      ...this.#pacing,
      transport: this.#transport,
      session,
      leaseClock,
      lease: new Lease(sentAt, session.ttlMs, this.#safetyMargin),
      safetyMargin: this.#safetyMargin,
      spent: new SpentTokens(),
      reports: this.#reports,
      onClosed: (closed) => this.#sessions.delete(closed),
    })
    this.#sessions.add(opened)
    if (this.#closing !== undefined) {
      await opened.close()
      this.#requireOpen()
    }
    return opened
  }

  /**
   * Who holds `key`, or `undefined` when nobody does. Stale the moment it is here, and **never
   * usable for a correctness decision** (FR-07).
   *
   * @throws ContentionError, NotLeaderError when the service could not be reached, after two retries
   */
  async inspect(key: string): Promise<LockInfo | undefined> {
    checkKey(key)
    this.#requireOpen()
    return this.#retry(inspectHop, () => this.#transport.inspect(key))
  }

  /**
   * Break-glass: takes the lock away from whoever holds it, raises the key's token floor, and
   * leaves an audit record (FR-08). At once the holder's renewals say lost and every later token is
   * above the floor; **not** at once do the resources refuse the displaced holder, see
   * `RevokeOutcome`.
   *
   * @param operator who does it, for the audit record
   * @param reason why; a server wants at least 8 characters
   * @param expectedToken revoke only this grant: without it, a repeated call may hit the next holder
   * @throws ContentionError, NotLeaderError when it is not known whether it happened: look first
   */
  async forceRevoke(
    key: string,
    operator: string,
    reason: string,
    expectedToken?: bigint,
  ): Promise<RevokeOutcome> {
    checkKey(key)
    checkOperator(operator)
    checkReason(reason)
    if (expectedToken !== undefined) checkFencingToken(expectedToken, 'expectedToken')
    this.#requireOpen()
    return this.#transport.revoke(key, operator, reason, expectedToken)
  }

  /**
   * Closes every session, which releases their locks, and the connection. Idempotent and bounded by
   * a few seconds; never rejects. Nothing beats, waits or keeps the process alive afterwards.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#sessions].map((session) => session.close()))
    await this.#transport.close()
  }

  #requireOpen(): void {
    if (this.#closing !== undefined) throw new TypeError('the client is closed')
  }

  #retry<T>(hop: Hop, attempt: () => Promise<T>): Promise<T> {
    const limits = { retries: hop.retries, withinMs: timeoutMsOf(hop), keepAlive: hop.awaited }
    return retry(this.#pacing, limits, attempt)
  }
}
