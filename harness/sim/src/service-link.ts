import type { LockEngine } from '@dlock/engine'
import type {
  AbortSignalLike,
  AuditedRevocation,
  LockHandle,
  LockService,
  SessionRegistry,
} from '@dlock/lock-api'
import type { LocalService } from '@dlock/lock-client'
import type { Clock } from '@dlock/system'
import type { Chance } from './chance.ts'
import type { LockServer } from './lock-server.ts'
import type { Machine } from './machine.ts'
import type { Network } from './network.ts'
import type { StoreWitness } from './store-witness.ts'

/** How often a client turns to another replica for no reason; it does when one fails, too. */
const WANDERS = 0.05
/** The client has given up on an answer by then. */
const FORGET_AFTER_MS = 3_000

/**
 * The service as a client sees it: each call is a message to one of the replicas and one back, and
 * a given-up acquire is one more that says so. The client bounds its own waits.
 */
export class ServiceLink implements LocalService {
  readonly #from: Machine
  readonly #servers: readonly LockServer[]
  readonly #network: Network
  readonly #chance: Chance
  readonly #clock: Clock
  readonly #witness: StoreWitness
  #server: LockServer

  constructor(
    from: Machine,
    servers: readonly LockServer[],
    network: Network,
    chance: Chance,
    witness: StoreWitness,
  ) {
    this.#from = from
    this.#witness = witness
    this.#servers = servers
    this.#network = network
    this.#chance = chance
    this.#clock = from.clock()
    this.#server = chance.pick(servers)
  }

  openSession(ownerId: string, ttlMs: number): Promise<string> {
    return this.#call(`open ${ownerId}`, (engine) => engine.openSession(ownerId, ttlMs))
  }

  heartbeat(sessionId: string, ttlMs: number): Promise<boolean> {
    return this.#call('heartbeat', (engine) => engine.heartbeat(sessionId, ttlMs))
  }

  closeSession(sessionId: string): Promise<number> {
    return this.#call('close', (engine) => engine.closeSession(sessionId))
  }

  locksOf(sessionId: string): ReturnType<SessionRegistry['locksOf']> {
    return this.#call('locksOf', (engine) => engine.locksOf(sessionId))
  }

  renewGrant(
    sessionId: string,
    key: string,
    token: bigint,
    ttlMs: number,
  ): Promise<LockHandle | undefined> {
    return this.#call(`renew ${key} ${token}`, (engine) =>
      engine.renewGrant(sessionId, key, token, ttlMs),
    )
  }

  revoke(
    key: string,
    operator: string,
    reason: string,
    expectedToken?: bigint,
  ): Promise<AuditedRevocation> {
    return this.#call(`revoke ${key}`, (engine) =>
      engine.revoke(key, operator, reason, expectedToken),
    )
  }

  /** The memory store grants what it is asked for. */
  grantedTtlMs(ttlMs: number): number {
    return ttlMs
  }

  forSession(sessionId: string): LockService {
    const ask = <T>(what: string, act: (service: LockService) => Promise<T>): Promise<T> =>
      this.#call(what, (engine) => act(engine.forSession(sessionId)))
    return {
      acquire: (key, ownerId, ttlMs, maxWaitMs, signal) =>
        this.#acquire(sessionId, key, maxWaitMs, signal, (engine, theirs) =>
          engine.forSession(sessionId).acquire(key, ownerId, ttlMs, maxWaitMs, theirs),
        ),
      tryAcquire: (key, ownerId, ttlMs) =>
        ask(`try ${key}`, (service) => service.tryAcquire(key, ownerId, ttlMs)),
      renew: (handle) =>
        ask(`renew ${handle.key} ${handle.fencingToken}`, (service) => service.renew(handle)),
      release: (handle) =>
        ask(`release ${handle.key} ${handle.fencingToken}`, (service) => service.release(handle)),
      inspect: (key) => ask(`inspect ${key}`, (service) => service.inspect(key)),
      forceRevoke: (key, operator, reason) =>
        ask(`revoke ${key}`, (service) => service.forceRevoke(key, operator, reason)),
    }
  }

  async #acquire(
    sessionId: string,
    key: string,
    waitMs: number,
    signal: AbortSignalLike | undefined,
    act: (engine: LockEngine, signal: AbortSignalLike) => Promise<LockHandle | undefined>,
  ): Promise<LockHandle | undefined> {
    const theirs = new AbortController()
    const what = `acquire ${key}`
    const server = this.#next()
    const cancel = (): void => {
      this.#network.post(this.#from, server.machine, `cancel ${what}`, () => theirs.abort())
    }
    signal?.addEventListener('abort', cancel, { once: true })
    const forget = (): void => signal?.removeEventListener('abort', cancel)
    // An answer may never come, and the client does not wait for it: nor does the listener.
    this.#clock.setTimer(waitMs + FORGET_AFTER_MS, forget)
    const sentNanos = this.#witness.nowNanos
    try {
      const handle = await this.#send(server, what, (engine) => act(engine, theirs.signal))
      if (handle === undefined) this.#witness.refused(key, sessionId, sentNanos)
      return handle
    } finally {
      forget()
    }
  }

  #call<T>(what: string, act: (engine: LockEngine) => Promise<T>): Promise<T> {
    return this.#send(this.#next(), what, act)
  }

  async #send<T>(
    server: LockServer,
    what: string,
    act: (engine: LockEngine) => Promise<T>,
  ): Promise<T> {
    try {
      return await this.#network.call(this.#from, server.machine, what, () => act(server.engine))
    } catch (error) {
      this.#server = this.#chance.pick(this.#servers)
      throw error
    }
  }

  #next(): LockServer {
    if (this.#chance.happens(WANDERS)) this.#server = this.#chance.pick(this.#servers)
    return this.#server
  }
}
