import {
  type CapableStore,
  checkFencingToken,
  checkKey,
  checkSessionId,
  checkTtlMs,
  type LockHandle,
  type LockInfo,
  LockOutcome,
  type LockStore,
  type SessionRegistry,
  type StoreCapabilities,
  type Transfer,
} from '@dlock/lock-api'
import {
  type Clock,
  type Ids,
  type Random,
  systemClock,
  systemIds,
  systemRandom,
} from '@dlock/system'
import { Announcements } from './announcements.ts'
import { Coalescer, type Kind } from './coalesce.ts'
import { DELETIONS, type Deletion } from './delete-if-owner.ts'
import type { PgListenClient, PgPool } from './driver-shape.ts'
import { findUnsafeSettings } from './durability.ts'
import { Executor } from './execute.ts'
import { EXTENDS, type Extension } from './extend.ts'
import { tokens } from './fencing-token.ts'
import { health } from './health.ts'
import { listing } from './listing.ts'
import { read } from './read.ts'
import { Sweeper } from './reap-expired.ts'
import { revoke } from './revoke.ts'
import {
  type Beat,
  BURIALS,
  closeSession,
  describeSession,
  HEARTBEATS,
  isSessionId,
  locksOf,
  openSession,
} from './sessions.ts'
import { checkHandOver, type HandOver, TRANSFERS } from './transfer.ts'
import { INSERTIONS, type InsertionSteps, REFUSALS, tryInsert } from './try-insert.ts'
import { WANTS } from './waiting.ts'

/** What a store is made of; only the pool is needed. */
export interface PostgresStoreOptions {
  /** A `Pool` of `pg`, or anything of its shape. It stays the caller's: to size, to end. */
  readonly pool: PgPool
  /**
   * Makes a `Client` of `pg` that is not connected yet and goes straight to the server, past any
   * pooler: announcements come over it. Left out: waiters poll.
   */
  readonly listen?: () => PgListenClient
  /** How long a call may take, from 1 ms; then it fails with a `ContentionError`. Default 2 000. */
  readonly callTimeoutMs?: number
  /**
   * Default true. False behind a pooler in transaction mode that does not follow prepared
   * statements, as PgBouncer before 1.21; there the store also finds out by itself, with a warning.
   */
  readonly preparedStatements?: boolean
  /** Statements of one kind in flight at once, from 1. Default 2. Each needs a connection of the pool. */
  readonly statementsInFlight?: number
  /** Something is wrong that an operator has to know. Default: a warning of the process. */
  readonly onWarning?: (message: string) => void
  /** What the driver threw, for the log; callers only get its meaning. Default: nothing. */
  readonly onDriverError?: (error: unknown, statement: string) => void
  /** Bounds calls, by its monotonic readings. Default: this process's. */
  readonly clock?: Clock
  /** Jitters reconnection. Default: this process's. */
  readonly random?: Random
  /** Names sessions. Default: unguessable ones. */
  readonly ids?: Ids
}

/** More would make a statement's plan and its locks last longer than they save. */
const ASKS_PER_STATEMENT = 256

/**
 * A store in a PostgreSQL whose schema `migrate` has made. Needs no start and no stop; it holds no
 * connection but for subscriptions.
 */
export class PostgresStore implements LockStore, SessionRegistry, CapableStore {
  readonly #executor: Executor
  readonly #ids: Ids
  readonly #onWarning: (message: string) => void
  readonly #insertionSteps: InsertionSteps
  readonly #extensions: Coalescer<Extension, LockHandle | undefined>
  readonly #deletions: Coalescer<Deletion, boolean>
  readonly #transfers: Coalescer<HandOver, Transfer>
  readonly #beats: Coalescer<Beat, boolean>
  readonly #wants: Coalescer<string, number | undefined>
  readonly #sweeper: Sweeper
  readonly #capabilities: StoreCapabilities

  constructor(options: PostgresStoreOptions) {
    const { pool, random = systemRandom, ids = systemIds } = options
    const onWarning = options.onWarning ?? warnProcess
    const executor = new Executor({
      pool,
      clock: options.clock ?? systemClock,
      callTimeoutMs: checkTtlMs(options.callTimeoutMs ?? 2_000, 'callTimeoutMs'),
      prepared: options.preparedStatements ?? true,
      onWarning,
      onDriverError: options.onDriverError ?? (() => {}),
    })
    const limits = {
      statements: checkTtlMs(options.statementsInFlight ?? 2, 'statementsInFlight'),
      asks: ASKS_PER_STATEMENT,
    }
    const coalesce = <Ask, Answer>(kind: Kind<Ask, Answer>): Coalescer<Ask, Answer> =>
      new Coalescer(kind, executor, limits)
    this.#executor = executor
    this.#ids = ids
    this.#onWarning = onWarning
    const insertions = coalesce(INSERTIONS)
    const refusals = coalesce(REFUSALS)
    const burials = coalesce(BURIALS)
    this.#insertionSteps = {
      insert: (ask) => insertions.ask(ask),
      whyRefused: (ask) => refusals.ask(ask),
      bury: (sessionId) => burials.ask(sessionId),
    }
    this.#extensions = coalesce(EXTENDS)
    this.#deletions = coalesce(DELETIONS)
    this.#transfers = coalesce(TRANSFERS)
    this.#beats = coalesce(HEARTBEATS)
    this.#wants = coalesce(WANTS)
    this.#sweeper = new Sweeper(executor)
    const announcements = new Announcements({
      listen: options.listen,
      executor,
      random,
      ids,
      onWarning,
    })
    this.#capabilities = this.#describe(announcements)
  }

  /**
   * Looks at the server's settings, and warns of each that a lock service must not run with.
   *
   * @throws ContentionError, NotLeaderError when the server cannot be asked
   */
  async warnOfSettings(): Promise<void> {
    for (const warning of await findUnsafeSettings(this.#executor)) this.#onWarning(warning)
  }

  capabilities(): StoreCapabilities {
    return this.#capabilities
  }

  async tryInsert(
    key: string,
    ownerId: string,
    sessionId: string,
    ttlMs: number,
  ): Promise<LockHandle | undefined> {
    return tryInsert(this.#insertionSteps, { key, ownerId, sessionId, ttlMs })
  }

  async extend(key: string, fencingToken: bigint, ttlMs: number): Promise<LockHandle | undefined> {
    checkKey(key)
    checkFencingToken(fencingToken)
    checkTtlMs(ttlMs)
    return this.#extensions.ask({ key, fencingToken, ttlMs })
  }

  async deleteIfOwner(key: string, fencingToken: bigint): Promise<boolean> {
    checkKey(key)
    checkFencingToken(fencingToken)
    return this.#deletions.ask({ key, fencingToken })
  }

  async read(key: string): Promise<LockInfo | undefined> {
    return read(this.#executor, key)
  }

  async revoke(key: string, operator: string, reason: string): Promise<LockOutcome> {
    const revocation = await revoke(this.#executor, key, operator, reason, undefined)
    return revocation.kind === 'revoked' ? revocation.outcome : LockOutcome.notHeld(key)
  }

  async reapExpired(now: Date): Promise<number> {
    return this.#sweeper.reapExpired(now)
  }

  backendId(): string {
    return 'pg'
  }

  async openSession(ownerId: string, ttlMs: number): Promise<string> {
    return openSession(this.#executor, this.#ids, ownerId, ttlMs)
  }

  async heartbeat(sessionId: string, ttlMs: number): Promise<boolean> {
    checkSessionId(sessionId)
    checkTtlMs(ttlMs)
    return isSessionId(sessionId) && this.#beats.ask({ sessionId, ttlMs })
  }

  async closeSession(sessionId: string): Promise<number> {
    return closeSession(this.#executor, sessionId)
  }

  async locksOf(sessionId: string): Promise<ReadonlySet<string>> {
    return locksOf(this.#executor, sessionId)
  }

  #describe(announcements: Announcements): StoreCapabilities {
    const executor = this.#executor
    return {
      waiting: {
        want: async (key) => this.#wants.ask(checkKey(key)),
        subscribe: async (onFreed, onGap) => announcements.subscribe(onFreed, onGap),
      },
      transfer: {
        transfer: async (key, fencingToken, next) => {
          const handOver = { key, fencingToken, next }
          checkHandOver(handOver)
          return this.#transfers.ask(handOver)
        },
      },
      sessions: { describeSession: async (sessionId) => describeSession(executor, sessionId) },
      listing: listing(executor),
      audit: {
        revokeExpecting: async (key, operator, reason, expectedToken) =>
          revoke(executor, key, operator, reason, expectedToken),
      },
      tokens: tokens(executor),
      health: health(executor),
    }
  }
}

function warnProcess(message: string): void {
  process.emitWarning(message, 'DlockWarning')
}
