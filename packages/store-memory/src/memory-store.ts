import {
  type CapableStore,
  type LockHandle,
  type LockInfo,
  LockOutcome,
  type LockStore,
  type SessionRegistry,
  type StoreCapabilities,
} from '@dlock/lock-api'
import { type Clock, type Ids, systemClock, systemIds } from '@dlock/system'
import { deleteIfOwner } from './delete-if-owner.ts'
import { extend } from './extend.ts'
import { listing } from './listing.ts'
import { MemoryState } from './memory-state.ts'
import { read } from './read.ts'
import { reapExpired } from './reap-expired.ts'
import { revoke } from './revoke.ts'
import { closeSession, describeSession, heartbeat, locksOf, openSession } from './sessions.ts'
import { transfer } from './transfer.ts'
import { tryInsert } from './try-insert.ts'
import { subscribe, want } from './waiting.ts'

/** What the store is given instead of finding it. */
export interface MemoryStoreOptions {
  /** Leases run by its monotonic clock. Default: this process's. */
  readonly clock?: Clock
  /** Names sessions and revocations. Default: unguessable ones. */
  readonly ids?: Ids
  /**
   * For tests and simulations: begins with a copy of what that store knows now, its tokens included,
   * and goes on without it. Instants are kept, so its clock must be one that goes on from theirs.
   */
  readonly backup?: MemoryStore
}

/**
 * A store in this process's memory. Every method does its whole work before it returns its
 * promise, so each is one atomic step.
 *
 * Not promised: that anything outlives the process. Tokens start again with it, so a resource that
 * outlives the process must not be guarded by this store's tokens.
 */
export class MemoryStore implements LockStore, SessionRegistry, CapableStore {
  readonly #state: MemoryState
  readonly #capabilities: StoreCapabilities

  constructor(options: MemoryStoreOptions = {}) {
    const { clock = systemClock, ids = systemIds, backup } = options
    const state = new MemoryState(clock, ids)
    if (backup !== undefined) state.restore(backup.#state)
    this.#state = state
    this.#capabilities = capabilities(state)
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
    return tryInsert(this.#state, key, ownerId, sessionId, ttlMs)
  }

  async extend(key: string, fencingToken: bigint, ttlMs: number): Promise<LockHandle | undefined> {
    return extend(this.#state, key, fencingToken, ttlMs)
  }

  async deleteIfOwner(key: string, fencingToken: bigint): Promise<boolean> {
    return deleteIfOwner(this.#state, key, fencingToken)
  }

  async read(key: string): Promise<LockInfo | undefined> {
    return read(this.#state, key)
  }

  async revoke(key: string, operator: string, reason: string): Promise<LockOutcome> {
    const revocation = revoke(this.#state, key, operator, reason, undefined)
    return revocation.kind === 'revoked' ? revocation.outcome : LockOutcome.notHeld(key)
  }

  async reapExpired(now: Date): Promise<number> {
    return reapExpired(this.#state, now)
  }

  backendId(): string {
    return 'memory'
  }

  async openSession(ownerId: string, ttlMs: number): Promise<string> {
    return openSession(this.#state, ownerId, ttlMs)
  }

  async heartbeat(sessionId: string, ttlMs: number): Promise<boolean> {
    return heartbeat(this.#state, sessionId, ttlMs)
  }

  async closeSession(sessionId: string): Promise<number> {
    return closeSession(this.#state, sessionId)
  }

  async locksOf(sessionId: string): Promise<ReadonlySet<string>> {
    return locksOf(this.#state, sessionId)
  }

  /**
   * For tests and simulations: the session's record vanishes, as if somebody had deleted it behind
   * the store's back. Nothing is announced, and its grants are left to be found dead.
   */
  loseSession(sessionId: string): void {
    this.#state.sessions.delete(sessionId)
  }
}

function capabilities(state: MemoryState): StoreCapabilities {
  return {
    waiting: {
      want: async (key) => want(state, key),
      // Nothing lies between this store and its listeners, so there is never a gap.
      subscribe: async (onFreed) => subscribe(state, onFreed),
    },
    transfer: {
      transfer: async (key, fencingToken, next) => transfer(state, key, fencingToken, next),
    },
    sessions: { describeSession: async (sessionId) => describeSession(state, sessionId) },
    listing: listing(state),
    audit: {
      revokeExpecting: async (key, operator, reason, expectedToken) =>
        revoke(state, key, operator, reason, expectedToken),
    },
    tokens: {
      highestToken: async () => state.tokens.highest,
      advanceTokens: async (above) => state.tokens.advance(above),
    },
    health: { checkHealth: async () => {} },
    ttlBounds: { granularityMs: 1, minTtlMs: 1, maxLatenessMs: 0 },
  }
}
