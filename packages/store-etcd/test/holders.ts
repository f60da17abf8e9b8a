import { RetryableLockError } from '@dlock/lock-api'
import type { EtcdStore } from '@dlock/store-etcd'
import { systemClock } from '@dlock/system'

const TTL_MS = 3_000
const RENEW_EVERY_MS = 400
const SESSION_MS = 60_000

/** What the holders and their rivals have seen. */
export interface Tally {
  grants: number
  renewals: number
  /** A grant or renewal that the store had promised for longer was said to be lost. */
  earlyLosses: number
  /** A rival was granted a key that was promised to its holder still. */
  doubleHolders: number
  /** A grant whose token was not above the one before. */
  tokensOutOfOrder: number
}

/**
 * Holders that renew their locks all the time, each through one store, and rivals that try for the
 * same keys through others. A holder counts its promise as a client does: from before the request,
 * and only what was answered.
 */
export class Holders {
  readonly tally: Tally = {
    grants: 0,
    renewals: 0,
    earlyLosses: 0,
    doubleHolders: 0,
    tokensOutOfOrder: 0,
  }
  readonly #promisedUntil = new Map<string, bigint>()
  readonly #highest = new Map<string, bigint>()
  readonly #watchers = new Set<() => void>()
  #stopping = false
  #tasks: Promise<void>[] = []

  start(stores: readonly EtcdStore[], locks: number): void {
    this.#tasks = Array.from({ length: locks }, (_, index) => {
      const store = stores[index % stores.length]
      const rival = stores[(index + 1) % stores.length]
      if (store === undefined || rival === undefined) throw new RangeError('no store')
      return [this.#hold(store, `lock-${index}`), this.#contend(rival, `lock-${index}`)]
    }).flat()
  }

  /** Resolves after this many more renewals. */
  hasRenewed(more: number): Promise<void> {
    const enough = this.tally.renewals + more
    return new Promise((resolve) => {
      this.#watchers.add(() => {
        if (this.tally.renewals >= enough) resolve()
      })
    })
  }

  async stop(): Promise<Tally> {
    this.#stopping = true
    await Promise.all(this.#tasks)
    return this.tally
  }

  async #hold(store: EtcdStore, key: string): Promise<void> {
    let session = await retrying(() => store.openSession('holder', SESSION_MS))
    let beatAt = systemClock.monotonicNanos()
    let token: bigint | undefined
    while (!this.#stopping) {
      await pause(RENEW_EVERY_MS)
      if (systemClock.monotonicNanos() - beatAt > 5_000_000_000n) {
        const alive = await unlessRetryable(() => store.heartbeat(session, SESSION_MS))
        if (alive === false) session = await retrying(() => store.openSession('holder', SESSION_MS))
        if (alive !== undefined) beatAt = systemClock.monotonicNanos()
      }
      const sent = systemClock.monotonicNanos()
      const held = token
      const handle = await unlessRetryable(async () =>
        held === undefined
          ? ((await store.tryInsert(key, 'holder', session, TTL_MS)) ?? 'refused')
          : ((await store.extend(key, held, TTL_MS)) ?? 'lost'),
      )
      if (handle === 'lost') {
        if (systemClock.monotonicNanos() < (this.#promisedUntil.get(key) ?? 0n)) {
          this.tally.earlyLosses += 1
        }
        token = undefined
      } else if (handle !== undefined && handle !== 'refused') {
        if (held === undefined) this.#granted(key, handle.fencingToken)
        else this.#renewed()
        token = handle.fencingToken
        this.#promisedUntil.set(key, sent + BigInt(TTL_MS) * 1_000_000n)
      }
    }
  }

  /** Its own grants it gives back at once: they are only there to be refused. */
  async #contend(store: EtcdStore, key: string): Promise<void> {
    const session = await retrying(() => store.openSession('rival', SESSION_MS))
    while (!this.#stopping) {
      await pause(RENEW_EVERY_MS)
      await unlessRetryable(() => store.heartbeat(session, SESSION_MS))
      const handle = await unlessRetryable(() => store.tryInsert(key, 'rival', session, TTL_MS))
      if (handle === undefined) continue
      if (systemClock.monotonicNanos() < (this.#promisedUntil.get(key) ?? 0n)) {
        this.tally.doubleHolders += 1
      }
      this.#granted(key, handle.fencingToken)
      await unlessRetryable(() => store.deleteIfOwner(key, handle.fencingToken))
    }
  }

  #renewed(): void {
    this.tally.renewals += 1
    for (const watcher of this.#watchers) watcher()
  }

  #granted(key: string, token: bigint): void {
    this.tally.grants += 1
    if (token <= (this.#highest.get(key) ?? 0n)) this.tally.tokensOutOfOrder += 1
    this.#highest.set(key, token)
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => systemClock.setTimer(ms, resolve, { keepAlive: true }))
}

async function unlessRetryable<Result>(call: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await call()
  } catch (error) {
    if (error instanceof RetryableLockError) return undefined
    // A session that died during a fault is opened again by whoever needs it.
    if (error instanceof Error && error.name === 'SessionDeadError') return undefined
    throw error
  }
}

async function retrying<Result>(call: () => Promise<Result>): Promise<Result> {
  for (;;) {
    const result = await unlessRetryable(call)
    if (result !== undefined) return result
  }
}
