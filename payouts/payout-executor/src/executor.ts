import { LockLostError, RetryableLockError, SessionDeadError } from '@dlock/lock-api'
import { LeaseTooShortError, type LockClient, type LockClientSession } from '@dlock/lock-client'
import {
  beginTrace,
  call,
  lockKeyOf,
  type Payout,
  type PayoutState,
  paymentOperations as payments,
} from '@dlock/messages'
import type { ErrorEnvelope } from '@dlock/protocol'
import type { Clock, Ids, Random, Timer } from '@dlock/system'
import type { Logger } from 'pino'
import type { ExecutorMetrics, Hop } from './executor-metrics.ts'
import type { ExecutorSettings } from './executor-settings.ts'
import type { SectionHold } from './experiment.ts'
import { Section, type SectionEnd } from './section.ts'

export interface ExecutorParts {
  readonly settings: ExecutorSettings
  readonly client: LockClient
  readonly metrics: ExecutorMetrics
  readonly log: Logger
  readonly reached: SectionHold
  readonly clock: Clock
  readonly random: Random
  readonly ids: Ids
}

/** What can be gone on with: not begun, or begun by a holder that may be gone. */
const WORKABLE: readonly PayoutState[] = ['RAIL_ACKED', 'RAIL_SUBMITTED', 'CLAIMED', 'PENDING']

/** One payout's end, or why it was not worked on in this pass. */
export type PassEnd = SectionEnd | 'contended' | 'lost' | 'unavailable'

/**
 * Polls, and pays what it gets the lock for. Without a lock it does nothing (FR-27): when the lock
 * service is away, no payout is begun, the backlog ages, and it drains when the service is back.
 */
export class Executor {
  readonly #parts: ExecutorParts
  #session: Promise<LockClientSession> | undefined
  #pass: Promise<void> = Promise.resolve()
  #timer: Timer | undefined
  #closed = false
  #oldestPending: Date | undefined
  /**
   * Where the next pass looks, by state; from the oldest on when there is none. Always to look at
   * the oldest would let two hundred that cannot go on keep every later one from its turn.
   */
  readonly #cursors = new Map<PayoutState, string>()

  constructor(parts: ExecutorParts) {
    this.#parts = parts
    parts.metrics.backlogAgeSeconds = () => this.backlogAgeSeconds()
  }

  start(): void {
    this.#pass = this.pass().then(() => {
      if (this.#closed) return
      const { clock, settings } = this.#parts
      this.#timer = clock.setTimer(settings.pollMs, () => this.start(), { keepAlive: true })
    })
  }

  /** Begins nothing more; ends when what was begun has ended, each step of which has a bound. */
  async close(): Promise<void> {
    this.#closed = true
    this.#timer?.cancel()
    await this.#pass
    await this.#parts.client.close()
  }

  /** Of the oldest payout that nobody has begun, as of the last look. */
  backlogAgeSeconds(): number {
    if (this.#oldestPending === undefined) return 0
    return Math.max(0, (this.#parts.clock.now().getTime() - this.#oldestPending.getTime()) / 1_000)
  }

  /** One look at everything that can be worked on; never rejects. */
  async pass(): Promise<void> {
    const queue = this.#shuffled(await this.#candidates()).values()
    const lane = async (): Promise<void> => {
      for (const payout of queue) {
        if (this.#closed) return
        await this.execute(payout)
      }
    }
    await Promise.all(Array.from({ length: this.#parts.settings.concurrency }, lane))
  }

  /** Takes the account's lock and pays one payout under it; the lock is released on every path. */
  async execute(candidate: Payout): Promise<PassEnd> {
    const { log, settings, metrics } = this.#parts
    const { payoutId, accountId } = candidate
    const who = { ownerId: settings.ownerId, payoutId, accountId }
    const startedAt = this.#nanos()
    const end = await this.#locked(candidate).catch((error: unknown): PassEnd => {
      if (error instanceof LeaseTooShortError) return 'later'
      if (error instanceof LockLostError) {
        log.error({ event: 'lock_lost', ...who, token: error.fencingToken.toString() })
        return 'lost'
      }
      if (error instanceof SessionDeadError) this.forgetSession()
      if (error instanceof SessionDeadError || error instanceof RetryableLockError) {
        log.warn({ event: 'lock_unavailable', ...who, why: error.message })
        return 'unavailable'
      }
      log.error({ event: 'payout_failed_unexpectedly', ...who, err: error })
      return 'later'
    })
    const seconds = Number(this.#nanos() - startedAt) / 1e9
    if (end === 'later') log.info({ event: 'payout_put_off', ...who })
    if (isCounted(end)) {
      metrics.executed(end, seconds)
      log.info({ event: 'payout_executed', ...who, outcome: end, seconds })
    }
    return end
  }

  async #locked(candidate: Payout): Promise<PassEnd> {
    const { settings, ids, reached, log } = this.#parts
    const session = await this.#openSession()
    const lock = await this.#timed('acquire', () =>
      session.acquire(lockKeyOf(candidate.accountId), { ttlMs: settings.ttlMs }),
    )
    if (lock === undefined) return 'contended'
    try {
      const payout = await this.#reread(candidate.payoutId)
      if (payout === undefined) return 'later'
      const token = lock.fencingToken.toString()
      const step = beginTrace(ids, { name: 'payout.execute', token })
      const { traceId, traceparent } = step
      log.debug({ event: 'payout_begun', payoutId: payout.payoutId, token, traceId })
      const checkStillHeld = settings.livenessChecks
        ? (needMs: number) => session.checkStillHeld(lock, { needMs })
        : () => undefined
      const timed = <T>(hop: Hop, work: () => Promise<T>): Promise<T> => this.#timed(hop, work)
      const onRefused = ({ code, details }: ErrorEnvelope): void => {
        log.warn({ event: 'refused', ownerId: settings.ownerId, token, traceId, code, details })
      }
      const parts = { ...settings, ids, traceparent, checkStillHeld, timed, onRefused, reached }
      const end = await new Section(parts, lock, payout).run().catch((error: unknown) => {
        step.end((error as Error).name)
        throw error
      })
      step.end(end === 'fenced' || end === 'ambiguous' ? end : undefined)
      return end
    } finally {
      await this.#timed('release', () => session.release(lock)).catch((error: unknown) => {
        // At worst the grant ends with its lease.
        log.warn({ event: 'release_failed', why: (error as Error).message })
      })
    }
  }

  /** FR-14: what was read before the lock was granted may have changed. */
  async #reread(payoutId: string): Promise<Payout | undefined> {
    const { paymentUrl } = this.#parts.settings
    const read = await call(
      paymentUrl,
      payments.getPayout,
      { payoutId },
      {
        timeoutMs: 1_000,
        retries: 2,
      },
    )
    return read.kind === 'ok' ? read.output : undefined
  }

  async #candidates(): Promise<Payout[]> {
    const { paymentUrl } = this.#parts.settings
    const pages = await Promise.all(
      WORKABLE.map(async (state) => {
        const cursor = this.#cursors.get(state)
        const query = { state, limit: 200, ...(cursor !== undefined && { cursor }) }
        const page = await call(paymentUrl, payments.listPayouts, query, { timeoutMs: 2_000 })
        if (page.kind !== 'ok') return []
        const { items, nextCursor } = page.output
        if (state === 'PENDING' && cursor === undefined) this.#noteBacklog(items)
        if (nextCursor === undefined) this.#cursors.delete(state)
        else this.#cursors.set(state, nextCursor)
        return items
      }),
    )
    return pages.flat()
  }

  #noteBacklog([oldest]: readonly Payout[]): void {
    this.#oldestPending = oldest === undefined ? undefined : new Date(oldest.createdAt)
  }

  /** Executors that all begin at the same end would only contend. */
  #shuffled(payouts: readonly Payout[]): Payout[] {
    const { random } = this.#parts
    return payouts
      .map((payout) => [random.next(), payout] as const)
      .sort(([a], [b]) => a - b)
      .map(([, payout]) => payout)
  }

  /** One session for all locks; a dead one is replaced by the next payout. */
  #openSession(): Promise<LockClientSession> {
    this.#session ??= this.#parts.client.openSession(this.#parts.settings.ownerId)
    const opening = this.#session
    return opening.catch((error: unknown) => {
      if (this.#session === opening) this.#session = undefined
      throw error
    })
  }

  /** The session that was there is dead, as the client says. */
  forgetSession(): void {
    this.#session = undefined
  }

  async #timed<T>(hop: Hop, work: () => Promise<T>): Promise<T> {
    const startedAt = this.#nanos()
    try {
      return await work()
    } finally {
      this.#parts.metrics.hop(hop, Number(this.#nanos() - startedAt) / 1e9)
    }
  }

  #nanos(): bigint {
    return this.#parts.clock.monotonicNanos()
  }
}

function isCounted(
  end: PassEnd,
): end is 'posted' | 'failed' | 'abandoned' | 'ambiguous' | 'fenced' {
  return (
    end === 'posted' ||
    end === 'failed' ||
    end === 'abandoned' ||
    end === 'ambiguous' ||
    end === 'fenced'
  )
}
