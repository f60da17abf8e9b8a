import type { RunningProcess } from '@dlock/faults'
import { LockError, type LockHandle } from '@dlock/lock-api'
import { LockClient } from '@dlock/lock-client'
import { createTestDatabase, EtcdCluster } from '@dlock/services'
import { systemClock } from '@dlock/system'
import { expect, onTestFinished, test } from 'vitest'
import { startListening } from './start-lockd.ts'

const KILLS = 4
const WORKERS = 8
const KEYS = ['a', 'b', 'c']
const TTL_MS = 1_500
/** For a hung test on a machine that is busy. */
const WITHIN_MS = 240_000
/** At one server, before a worker goes to the other of its own accord. */
const TURNS = 20

/** Opens a store of the test's own. @returns the flags that lead a lockd to it */
const backends: Record<string, () => Promise<readonly string[]>> = {
  async PostgreSQL() {
    const database = await createTestDatabase()
    onTestFinished(() => database[Symbol.asyncDispose]())
    return ['--lockdb-url', database.url]
  },
  async etcd() {
    const etcd = await EtcdCluster.start()
    onTestFinished(() => etcd[Symbol.asyncDispose]())
    return ['--lock-backend', 'etcd', '--etcd-endpoints', etcd.endpoints.join(',')]
  },
}

test.each(Object.entries(backends))(
  `two lockd on one %s, ${KILLS} times one of them killed with -9 under load: no two live grants of a key, tokens strictly increasing, and who waited goes on at the other`,
  {
    timeout: WITHIN_MS,
  },
  async (_, open) => {
    const flags = await open()
    const servers = [await Server.start(flags), await Server.start(flags)] as const
    const ledger = new Ledger()
    const stopped = new AbortController()
    const workers = Array.from({ length: WORKERS }, (_, n) =>
      work(`w${n}`, n, servers, ledger, stopped.signal),
    )
    await Promise.all(servers.map((server) => server.hasGranted(30)))
    for (let kill = 0; kill < KILLS; kill += 1) {
      const [victim, other] = kill % 2 === 0 ? servers : [servers[1], servers[0]]
      await victim.kill()
      await other.hasGranted(30)
      await victim.restart()
      await victim.hasGranted(30)
    }
    stopped.abort()
    await Promise.all(workers)
    expect(ledger.violations).toEqual([])
    expect(ledger.failedOver).toBeGreaterThan(0)
  },
)

/** One lockd after another, each at an address of its own. */
class Server {
  readonly #flags: readonly string[]
  #process: RunningProcess
  #url: string
  #granted = 0
  readonly #watchers = new Set<() => void>()

  static async start(flags: readonly string[]): Promise<Server> {
    const { process, url } = await startListening(flags)
    return new Server(flags, process, url)
  }

  private constructor(flags: readonly string[], process: RunningProcess, url: string) {
    this.#flags = flags
    this.#process = process
    this.#url = url
  }

  get url(): string {
    return this.#url
  }

  async kill(): Promise<void> {
    await this.#process.kill()
  }

  async restart(): Promise<void> {
    const { process, url } = await startListening(this.#flags)
    this.#process = process
    this.#url = url
  }

  granted(): void {
    this.#granted += 1
    for (const watcher of this.#watchers) watcher()
  }

  /** Resolves after this many more grants. */
  hasGranted(more: number): Promise<void> {
    const enough = this.#granted + more
    return new Promise((resolve) => {
      const watcher = (): void => {
        if (this.#granted < enough) return
        this.#watchers.delete(watcher)
        resolve()
      }
      this.#watchers.add(watcher)
    })
  }
}

/** What all clients of all servers were told, as one who sees it all. */
class Ledger {
  readonly violations: string[] = []
  /** Calls that failed because their server was killed, and were made again at the other one. */
  failedOver = 0
  readonly #highest = new Map<string, bigint>()
  readonly #live = new Map<string, LockHandle>()

  /** By its holder's own, conservative clock: the service may not give it to another before. */
  granted(lock: LockHandle): void {
    const { key, fencingToken } = lock
    const live = this.#live.get(key)
    const now = systemClock.monotonicNanos()
    if (live !== undefined && live.clientDeadlineNanos > now) {
      this.violations.push(`${key}: ${fencingToken} was granted while ${live.fencingToken} lives`)
    }
    const highest = this.#highest.get(key) ?? 0n
    if (fencingToken <= highest) {
      this.violations.push(`${key}: ${fencingToken} was granted after ${highest}`)
    }
    this.#highest.set(key, fencingToken)
    this.#live.set(key, lock)
  }

  /** From before its release is sent, nobody counts on it. */
  letGo(lock: LockHandle): void {
    if (this.#live.get(lock.key) === lock) this.#live.delete(lock.key)
  }
}

/** Acquires and releases: some turns at one server, or until it fails, then at the other. */
async function work(
  ownerId: string,
  first: number,
  servers: readonly [Server, Server],
  ledger: Ledger,
  stopped: AbortSignal,
): Promise<void> {
  for (let turn = first; !stopped.aborted; turn += 1) {
    const server = servers[turn % 2 === 0 ? 0 : 1]
    const client = new LockClient({ url: server.url, sessionTtlMs: TTL_MS })
    try {
      await workAt(client, server, ownerId, ledger, stopped)
    } catch (error) {
      if (!(error instanceof LockError)) throw error
      ledger.failedOver += 1
    } finally {
      await client.close()
    }
  }
}

async function workAt(
  client: LockClient,
  server: Server,
  ownerId: string,
  ledger: Ledger,
  stopped: AbortSignal,
): Promise<void> {
  const session = await client.openSession(ownerId)
  for (let turn = 0; turn < TURNS && !stopped.aborted; turn += 1) {
    const key = KEYS[turn % KEYS.length] ?? 'a'
    const lock = await session.acquire(key, { ttlMs: TTL_MS, maxWaitMs: 20_000 })
    if (lock === undefined) continue
    ledger.granted(lock)
    server.granted()
    // Another worker's turn, while this one holds the lock.
    await new Promise((resolve) => setImmediate(resolve))
    ledger.letGo(lock)
    await session.release(lock)
  }
}
