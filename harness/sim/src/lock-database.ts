import {
  type AuditedRevocation,
  type LockHandle,
  LockOutcome,
  type NextHolder,
  type Transfer,
} from '@dlock/lock-api'
import { MemoryStore } from '@dlock/store-memory'
import type { Ids } from '@dlock/system'
import { seededIds } from '@dlock/testing'
import type { Breakage, StoreVerbs } from './broken-builds.ts'
import { mix } from './chance.ts'
import type { Journal } from './journal.ts'
import type { Machine } from './machine.ts'
import { StoreWitness, type Testimony } from './store-witness.ts'

interface Backup {
  readonly atNanos: number
  readonly store: MemoryStore
  readonly testimony: Testimony
}

export interface LockDatabaseParts {
  readonly machine: Machine
  readonly journal: Journal
  readonly seed: number
  readonly breakage: Breakage
}

/**
 * The database: the shipped `MemoryStore` on a machine of its own, with a witness at its side and
 * backups that a fail-over can go back to. A crash keeps what it knows, as a disk would; calls that
 * were on their way get no answer.
 */
export class LockDatabase {
  readonly machine: Machine
  readonly witness: StoreWitness
  readonly #parts: LockDatabaseParts
  readonly #backups: Backup[] = []
  readonly #ids: Ids
  #store: MemoryStore
  /** The store's own, unless they are broken on purpose. */
  #verbs: StoreVerbs
  readonly #listeners = new Set<(key: string) => void>()

  constructor(parts: LockDatabaseParts) {
    this.machine = parts.machine
    this.#parts = parts
    this.#ids = seededIds(mix(parts.seed, 'ids'))
    const clock = parts.machine.clock()
    this.#store = new MemoryStore({ clock, ids: this.#ids })
    this.witness = new StoreWitness(clock, parts.journal, () => parts.machine.jumps)
    this.#verbs = this.#begin()
  }

  listen(onFreed: (key: string) => void): () => void {
    this.#listeners.add(onFreed)
    return () => void this.#listeners.delete(onFreed)
  }

  async tryInsert(
    key: string,
    ownerId: string,
    sessionId: string,
    ttlMs: number,
  ): Promise<LockHandle | undefined> {
    const handle = await this.#verbs.tryInsert(key, ownerId, sessionId, ttlMs)
    this.witness.inserted(key, sessionId, ttlMs, handle)
    return handle
  }

  async extend(key: string, token: bigint, ttlMs: number): Promise<LockHandle | undefined> {
    const handle = await this.#verbs.extend(key, token, ttlMs)
    this.witness.extended(key, token, ttlMs, handle)
    return handle
  }

  async deleteIfOwner(key: string, token: bigint): Promise<boolean> {
    const isDeleted = await this.#verbs.deleteIfOwner(key, token)
    this.witness.deleted(key, token, isDeleted)
    return isDeleted
  }

  async transfer(key: string, token: bigint, next: NextHolder): Promise<Transfer> {
    const passed = await this.#verbs.transfer(key, token, next)
    this.witness.transferred(key, token, next, passed)
    return passed
  }

  async revoke(
    key: string,
    operator: string,
    reason: string,
    expectedToken: bigint | undefined,
  ): Promise<AuditedRevocation> {
    const audit = this.#store.capabilities().audit
    if (audit === undefined) throw new TypeError('the memory store audits')
    const revocation = await audit.revokeExpecting(key, operator, reason, expectedToken)
    const held = revocation.kind === 'revoked'
    this.witness.revoked(key, held ? revocation.outcome : LockOutcome.notHeld(key))
    return revocation
  }

  async openSession(ownerId: string, ttlMs: number): Promise<string> {
    const sessionId = await this.#store.openSession(ownerId, ttlMs)
    this.witness.openedSession(sessionId, ttlMs)
    return sessionId
  }

  async heartbeat(sessionId: string, ttlMs: number): Promise<boolean> {
    const isAlive = await this.#verbs.heartbeat(sessionId, ttlMs)
    this.witness.heartbeat(sessionId, ttlMs, isAlive)
    return isAlive
  }

  async closeSession(sessionId: string): Promise<number> {
    const released = await this.#store.closeSession(sessionId)
    this.witness.closedSession(sessionId)
    return released
  }

  reapExpired(now: Date): Promise<number> {
    return this.#verbs.reapExpired(now)
  }

  /** What needs no witness: it changes nothing. */
  get plain(): MemoryStore {
    return this.#store
  }

  /** A backup as of now. */
  backUp(atNanos: number): void {
    this.#backups.push({
      atNanos,
      store: new MemoryStore({ clock: this.machine.clock(), backup: this.#store }),
      testimony: this.witness.testimony(),
    })
  }

  /** A new process over what the disk has. Whoever listened is connected again. */
  restart(): void {
    this.machine.start()
    this.#store = new MemoryStore({
      clock: this.machine.clock(),
      ids: this.#ids,
      backup: this.#store,
    })
    this.#verbs = this.#begin()
  }

  /** Back to the newest backup that was taken by then; `false` when there is none. */
  restore(byNanos: number): boolean {
    const backup = this.#backups.findLast(({ atNanos }) => atNanos <= byNanos)
    if (backup === undefined) return false
    this.#store = new MemoryStore({
      clock: this.machine.clock(),
      ids: this.#ids,
      backup: backup.store,
    })
    this.witness.restored(backup.testimony)
    this.#verbs = this.#begin()
    return true
  }

  /** @returns the verbs of this life of the database */
  #begin(): StoreVerbs {
    const store = this.#store
    void store.capabilities().waiting?.subscribe(
      (key) => {
        for (const listener of this.#listeners) listener(key)
      },
      () => {},
    )
    const verbs = verbsOf(store)
    return { ...verbs, ...this.#parts.breakage.store?.(verbs, store) }
  }
}

function verbsOf(store: MemoryStore): StoreVerbs {
  return {
    tryInsert: (...args) => store.tryInsert(...args),
    extend: (...args) => store.extend(...args),
    deleteIfOwner: (...args) => store.deleteIfOwner(...args),
    heartbeat: (...args) => store.heartbeat(...args),
    reapExpired: (...args) => store.reapExpired(...args),
    transfer: async (...args) => {
      const { transfer } = store.capabilities()
      if (transfer === undefined) throw new TypeError('the memory store hands on')
      return transfer.transfer(...args)
    },
  }
}
