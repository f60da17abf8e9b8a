import {
  type AuditedRevocation,
  type CapableStore,
  ContentionError,
  type LockHandle,
  type LockInfo,
  LockOutcome,
  type LockStore,
  type NextHolder,
  type SessionRegistry,
  type SessionState,
  type StoreCapabilities,
  type Transfer,
} from '@dlock/lock-api'
import type { Clock } from '@dlock/system'
import type { LockDatabase } from './lock-database.ts'
import type { Machine } from './machine.ts'
import type { Network } from './network.ts'

/** A store's own call deadline: then nothing is known. */
const CALL_WITHIN_MS = 1_000

/** The answer, or a `ContentionError` after `ms` of `clock`. */
export function within<T>(clock: Clock, ms: number, answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = (): void => reject(new ContentionError(`no answer within ${ms} ms`))
    const timer = clock.setTimer(ms, late)
    answer
      .then(resolve, reject)
      .finally(() => timer.cancel())
      .catch(() => {})
  })
}

/** The database as an engine sees it: each call is a message there and one back. */
export class StoreLink implements LockStore, SessionRegistry, CapableStore {
  readonly #from: Machine
  readonly #database: LockDatabase
  readonly #network: Network
  readonly #clock: Clock

  constructor(from: Machine, database: LockDatabase, network: Network, clock: Clock) {
    this.#from = from
    this.#database = database
    this.#network = network
    this.#clock = clock
  }

  tryInsert(
    key: string,
    ownerId: string,
    sessionId: string,
    ttlMs: number,
  ): Promise<LockHandle | undefined> {
    return this.#call(`insert ${key} ${ownerId} ${ttlMs}`, (database) =>
      database.tryInsert(key, ownerId, sessionId, ttlMs),
    )
  }

  extend(key: string, token: bigint, ttlMs: number): Promise<LockHandle | undefined> {
    return this.#call(`extend ${key} ${token}`, (database) => database.extend(key, token, ttlMs))
  }

  deleteIfOwner(key: string, token: bigint): Promise<boolean> {
    return this.#call(`delete ${key} ${token}`, (database) => database.deleteIfOwner(key, token))
  }

  read(key: string): Promise<LockInfo | undefined> {
    return this.#call(`read ${key}`, ({ plain }) => plain.read(key))
  }

  async revoke(key: string, operator: string, reason: string): Promise<LockOutcome> {
    const revocation = await this.#revoke(key, operator, reason, undefined)
    return revocation.kind === 'revoked' ? revocation.outcome : LockOutcome.notHeld(key)
  }

  reapExpired(now: Date): Promise<number> {
    return this.#call('reap', (database) => database.reapExpired(now))
  }

  backendId(): string {
    return 'memory'
  }

  openSession(ownerId: string, ttlMs: number): Promise<string> {
    return this.#call(`open ${ownerId}`, (database) => database.openSession(ownerId, ttlMs))
  }

  heartbeat(sessionId: string, ttlMs: number): Promise<boolean> {
    return this.#call('heartbeat', (database) => database.heartbeat(sessionId, ttlMs))
  }

  closeSession(sessionId: string): Promise<number> {
    return this.#call('close', (database) => database.closeSession(sessionId))
  }

  locksOf(sessionId: string): Promise<ReadonlySet<string>> {
    return this.#call('locksOf', ({ plain }) => plain.locksOf(sessionId))
  }

  capabilities(): StoreCapabilities {
    const bounds = this.#database.plain.capabilities().ttlBounds
    return {
      waiting: {
        want: (key) =>
          this.#call(`want ${key}`, async ({ plain }) => plain.capabilities().waiting?.want(key)),
        subscribe: async (onFreed) => this.#listen(onFreed),
      },
      transfer: {
        transfer: (key, token, next: NextHolder): Promise<Transfer> =>
          this.#call(`transfer ${key} ${token} ${next.ownerId}`, (database) =>
            database.transfer(key, token, next),
          ),
      },
      sessions: {
        describeSession: (sessionId) =>
          this.#call('describe', async ({ plain }): Promise<SessionState> => {
            const state = await plain.capabilities().sessions?.describeSession(sessionId)
            return state ?? { state: 'unknown' }
          }),
      },
      audit: {
        revokeExpecting: (key, operator, reason, token) =>
          this.#revoke(key, operator, reason, token),
      },
      tokens: {
        highestToken: () =>
          this.#call('tokens', async ({ plain }) => {
            return (await plain.capabilities().tokens?.highestToken()) ?? 0n
          }),
        advanceTokens: (above) =>
          this.#call(`advance ${above}`, async ({ plain }) => {
            return (await plain.capabilities().tokens?.advanceTokens(above)) ?? 0n
          }),
      },
      ...(bounds !== undefined && { ttlBounds: bounds }),
    }
  }

  #revoke(
    key: string,
    operator: string,
    reason: string,
    token: bigint | undefined,
  ): Promise<AuditedRevocation> {
    return this.#call(`revoke ${key}`, (database) => database.revoke(key, operator, reason, token))
  }

  /** Announcements may be lost: the engine polls as well. */
  #listen(onFreed: (key: string) => void): () => Promise<void> {
    const { life } = this.#from
    const stop = this.#database.listen((key) => {
      if (this.#from.life !== life) return
      this.#network.post(this.#database.machine, this.#from, `freed ${key}`, () => onFreed(key))
    })
    return async () => stop()
  }

  #call<T>(what: string, ask: (database: LockDatabase) => Promise<T>): Promise<T> {
    const { machine } = this.#database
    const answer = this.#network.call(this.#from, machine, what, () => ask(this.#database))
    return within(this.#clock, CALL_WITHIN_MS, answer)
  }
}
