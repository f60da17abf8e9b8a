import {
  type CapableStore,
  checkFencingToken,
  type LockHandle,
  type LockInfo,
  LockOutcome,
  type LockStore,
  type SessionRegistry,
  type StoreCapabilities,
} from '@dlock/lock-api'
import {
  type Clock,
  type Ids,
  type Random,
  systemClock,
  systemIds,
  systemRandom,
} from '@dlock/system'
import { EtcdClient, type EtcdTls } from './client/etcd-client.ts'
import { deleteIfOwner } from './delete-if-owner.ts'
import { EtcdState, TTL_BOUNDS } from './etcd-state.ts'
import { extend } from './extend.ts'
import { checkHealth } from './health.ts'
import { listing } from './listing.ts'
import { join, leave } from './queue.ts'
import { read } from './read.ts'
import { reapExpired } from './reap-expired.ts'
import { revoke } from './revoke.ts'
import { whyUnsafe } from './safe-version.ts'
import { closeSession, describeSession, heartbeat, locksOf, openSession } from './sessions.ts'
import { transfer } from './transfer.ts'
import { translateError } from './translate-error.ts'
import { tryInsert } from './try-insert.ts'
import { Announcements, want } from './waiting.ts'

/** Which cluster, how to be let in, and what else a store is made of. Only the members are required. */
export interface EtcdStoreOptions {
  /** `host:port` of the members, one or more. */
  readonly endpoints: readonly string[]
  /** Locks of different namespaces have nothing to do with one another. Default `default`. */
  readonly namespace?: string
  /** Default: no TLS. */
  readonly tls?: EtcdTls | undefined
  /** Who to sign in as. Default: nobody, which is enough for a cluster without users. */
  readonly auth?: { readonly user: string; readonly password: string } | undefined
  /** How long one try may take, in milliseconds. Default 1 000. */
  readonly tryMs?: number
  /**
   * The id of the only cluster to talk to, hexadecimal as etcd logs it. A lock service that is sent
   * to another cluster grants what is held in the first one. Default: whichever answers.
   */
  readonly clusterId?: string | undefined
  /** Something is wrong that an operator has to know. Default: a warning of the process. */
  readonly onWarning?: (message: string) => void
  readonly clock?: Clock
  readonly ids?: Ids
  readonly random?: Random
}

/**
 * A store in an etcd cluster. Leases are whole seconds, at least 2 (see `TTL_BOUNDS`). Any process
 * serves any call; what one of them remembers is a guess that etcd checks.
 *
 * Call `start` before anything else, and `close` at the end.
 */
export class EtcdStore implements LockStore, SessionRegistry, CapableStore {
  readonly #state: EtcdState
  readonly #announcements: Announcements
  readonly #capabilities: StoreCapabilities
  readonly #clusterId: string | undefined
  readonly #onWarning: (message: string) => void

  /** @throws RangeError when there is no endpoint, or the namespace is not a plain name */
  constructor(options: EtcdStoreOptions) {
    const namespace = options.namespace ?? 'default'
    if (!/^[\w.-]{1,64}$/.test(namespace)) {
      throw new RangeError(
        `namespace must be 1 to 64 letters, digits, ".", "_" or "-", got ${JSON.stringify(namespace)}`,
      )
    }
    const client = new EtcdClient({
      endpoints: options.endpoints,
      tls: options.tls,
      auth: options.auth,
      tryMs: options.tryMs ?? 1_000,
      clock: options.clock ?? systemClock,
    })
    this.#state = new EtcdState(client, namespace, options.ids ?? systemIds)
    this.#announcements = new Announcements(this.#state, options.random ?? systemRandom)
    this.#capabilities = this.#capable()
    this.#clusterId = options.clusterId
    this.#onWarning = options.onWarning ?? ((message) => process.emitWarning(message))
  }

  /**
   * Reads the namespace's epoch, or begins its first, and warns of a version that is unsafe, as far
   * as the member that answers tells.
   *
   * @throws ContentionError, NotLeaderError when the cluster cannot be asked, or is another one
   */
  start(): Promise<void> {
    return translated(async () => {
      const unsafe = whyUnsafe(await this.#state.client.version())
      if (unsafe !== undefined) this.#onWarning(unsafe)
      await this.#state.epoch.load(this.#clusterId)
    })
  }

  close(): void {
    this.#announcements.close()
    this.#state.client.close()
  }

  capabilities(): StoreCapabilities {
    return this.#capabilities
  }

  tryInsert(
    key: string,
    ownerId: string,
    sessionId: string,
    ttlMs: number,
  ): Promise<LockHandle | undefined> {
    return translated(() => tryInsert(this.#state, key, ownerId, sessionId, ttlMs))
  }

  extend(key: string, fencingToken: bigint, ttlMs: number): Promise<LockHandle | undefined> {
    return translated(() => extend(this.#state, key, fencingToken, ttlMs))
  }

  deleteIfOwner(key: string, fencingToken: bigint): Promise<boolean> {
    return translated(() => deleteIfOwner(this.#state, key, fencingToken))
  }

  read(key: string): Promise<LockInfo | undefined> {
    return translated(() => read(this.#state, key))
  }

  revoke(key: string, operator: string, reason: string): Promise<LockOutcome> {
    return translated(async () => {
      const revocation = await revoke(this.#state, key, operator, reason, undefined)
      return revocation.kind === 'revoked' ? revocation.outcome : LockOutcome.notHeld(key)
    })
  }

  reapExpired(now: Date): Promise<number> {
    return translated(() => reapExpired(this.#state, now))
  }

  backendId(): string {
    return 'etcd'
  }

  openSession(ownerId: string, ttlMs: number): Promise<string> {
    return translated(() => openSession(this.#state, ownerId, ttlMs))
  }

  heartbeat(sessionId: string, ttlMs: number): Promise<boolean> {
    return translated(() => heartbeat(this.#state, sessionId, ttlMs))
  }

  closeSession(sessionId: string): Promise<number> {
    return translated(() => closeSession(this.#state, sessionId))
  }

  locksOf(sessionId: string): Promise<ReadonlySet<string>> {
    return translated(() => locksOf(this.#state, sessionId))
  }

  #capable(): StoreCapabilities {
    const state = this.#state
    const lists = listing(state)
    return {
      ttlBounds: TTL_BOUNDS,
      waiting: {
        want: (key) => translated(() => want(state, key)),
        subscribe: (onFreed, onGap) =>
          translated(() => this.#announcements.subscribe(onFreed, onGap)),
      },
      queue: {
        join: (key) => translated(() => join(state, key)),
        leave: (key) => leave(state, key),
      },
      transfer: {
        transfer: (key, fencingToken, next) =>
          translated(() => transfer(state, key, fencingToken, next)),
      },
      sessions: {
        describeSession: (sessionId) => translated(() => describeSession(state, sessionId)),
      },
      listing: {
        listLocks: (query) => translated(() => lists.listLocks(query)),
        listSessions: (query) => translated(() => lists.listSessions(query)),
        listRevocations: (query) => translated(() => lists.listRevocations(query)),
      },
      audit: {
        revokeExpecting: (key, operator, reason, expectedToken) =>
          translated(() => revoke(state, key, operator, reason, expectedToken)),
      },
      tokens: {
        highestToken: () => translated(() => state.epoch.highestToken()),
        advanceTokens: (above) =>
          translated(() => state.epoch.advance(checkFencingToken(above, 'above'))),
      },
      health: { checkHealth: () => translated(() => checkHealth(state)) },
    }
  }
}

async function translated<Result>(verb: () => Promise<Result>): Promise<Result> {
  try {
    return await verb()
  } catch (error) {
    throw translateError(error)
  }
}
