import type { LockHandle } from '@dlock/lock-api'
import { createTestDatabase, type TestDatabase } from '@dlock/services'
import { migrate, PostgresStore } from '@dlock/store-postgres'
import { seededRandom } from '@dlock/testing'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type EngineOptions, LockEngine } from '../src/index.ts'
import { granted } from './stage.ts'
import { StagedStore } from './staged-store.ts'

const LONG_MS = 60_000

let database: TestDatabase
let admin: pg.Pool
const cleanUps: (() => Promise<void>)[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  admin = new pg.Pool({ connectionString: database.url, max: 2 })
  await migrate(admin)
})

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp()
})

afterAll(async () => {
  await admin.end()
  await database[Symbol.asyncDispose]()
})

interface Process {
  readonly engine: LockEngine
  readonly store: StagedStore
}

/** What a process of its own would have: an engine, a store, a pool, a listener. */
async function startProcess(
  options: Partial<EngineOptions> = {},
  connections = 4,
): Promise<Process> {
  const pool = new pg.Pool({ connectionString: database.url, max: connections })
  const store = new StagedStore(
    new PostgresStore({
      pool,
      listen: () => new pg.Client({ connectionString: database.url }),
      callTimeoutMs: 10_000,
      onWarning: () => {},
    }),
  )
  // No poll within the time of a test: whoever is served was told, or knew when to look.
  const engine = new LockEngine({ store, fallbackPollMs: LONG_MS, ...options })
  cleanUps.push(async () => {
    await engine.close()
    await pool.end()
  })
  await engine.start()
  return { engine, store }
}

/** Settles when a waiter's interest has reached the store. */
async function wanted(key: string): Promise<void> {
  for (;;) {
    const { rows } = await admin.query('SELECT 1 FROM lock_entry WHERE lock_key = $1 AND wanted', [
      key,
    ])
    if (rows.length > 0) return
  }
}

test('a release in one process is told to the waiter in another', async () => {
  const [here, there] = [await startProcess(), await startProcess()]
  const holderId = await here.engine.openSession('holder', LONG_MS)
  const waiterId = await there.engine.openSession('waiter', LONG_MS)
  const holder = here.engine.forSession(holderId)
  const lock = granted(await holder.tryAcquire('told', 'holder', LONG_MS))
  const waiting = there.engine.forSession(waiterId).acquire('told', 'waiter', LONG_MS, LONG_MS)
  await wanted('told')
  await holder.release(lock)
  expect(granted(await waiting).fencingToken).toBeGreaterThan(lock.fencingToken)
})

test('a release in the same process is one transfer, and tells nobody who does not wait', async () => {
  const { engine, store } = await startProcess()
  const [one, two] = [
    await engine.openSession('a', LONG_MS),
    await engine.openSession('b', LONG_MS),
  ]
  const lock = granted(await engine.forSession(one).tryAcquire('handed', 'a', LONG_MS))
  const waiting = engine.forSession(two).acquire('handed', 'b', LONG_MS, LONG_MS)
  await wanted('handed')
  const before = store.count('tryInsert')
  await engine.forSession(one).release(lock)
  expect(granted(await waiting).fencingToken).toBeGreaterThan(lock.fencingToken)
  expect(store.count('transfer')).toBe(1)
  expect(store.count('tryInsert')).toBe(before)
})

test('a lease that runs out, or a session that dies, wakes the waiter when it is due', async () => {
  const [here, there] = [await startProcess(), await startProcess()]
  const waiterId = await there.engine.openSession('waiter', LONG_MS)
  const waiter = there.engine.forSession(waiterId)
  const holderId = await here.engine.openSession('holder', LONG_MS)
  const brief = await here.engine.forSession(holderId).tryAcquire('lease', 'holder', 400)
  const first = await waiter.acquire('lease', 'waiter', LONG_MS, LONG_MS)
  expect(granted(first).fencingToken).toBeGreaterThan(granted(brief).fencingToken)
  const doomedId = await here.engine.openSession('doomed', 400)
  const doomed = await here.engine.forSession(doomedId).tryAcquire('session', 'doomed', LONG_MS)
  const second = await waiter.acquire('session', 'waiter', LONG_MS, LONG_MS)
  expect(granted(second).fencingToken).toBeGreaterThan(granted(doomed).fencingToken)
})

test('a release that nobody heard, because the listener was cut off, is made up for', async () => {
  const [here, there] = [await startProcess(), await startProcess()]
  const holderId = await here.engine.openSession('holder', LONG_MS)
  const waiterId = await there.engine.openSession('waiter', LONG_MS)
  const holder = here.engine.forSession(holderId)
  const lock = granted(await holder.tryAcquire('cut off', 'holder', LONG_MS))
  const waiting = there.engine.forSession(waiterId).acquire('cut off', 'waiter', LONG_MS, LONG_MS)
  await wanted('cut off')
  await admin.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND query ILIKE 'listen%'`,
  )
  await holder.release(lock)
  granted(await waiting)
})

test('P-10: a pool of 2 connections, 20 waiters on one key: all in turn, and renewals go through', async () => {
  const { engine } = await startProcess({}, 2)
  const names = Array.from({ length: 21 }, (_, index) => `worker-${index}`)
  const sessions = await Promise.all(names.map((name) => engine.openSession(name, LONG_MS)))
  const served: string[] = []
  const turns = names.map(async (name, index) => {
    const service = engine.forSession(sessions[index] ?? '')
    const lock = granted(await service.acquire('pool', name, LONG_MS, LONG_MS))
    served.push(name)
    const renewed = granted(await service.renew(lock))
    expect(await service.release(renewed)).toBe(true)
  })
  await Promise.all(turns)
  expect(served).toEqual(names)
})

test('FR-01, FR-02: two processes fight for three keys: one holder at a time, rising tokens', async () => {
  const processes = [
    await startProcess({ fallbackPollMs: 1_000, random: seededRandom(1) }),
    await startProcess({ fallbackPollMs: 1_000, random: seededRandom(2) }),
  ]
  const random = seededRandom(3)
  const referee = new Referee()
  const workers = Array.from({ length: 16 }, async (_, index) => {
    const name = `worker-${index}`
    const process = processes[index % 2]
    if (process === undefined) return
    const service = process.engine.forSession(await process.engine.openSession(name, LONG_MS))
    for (let turn = 0; turn < 40; turn += 1) {
      const key = `soak-${Math.floor(random.next() * 3)}`
      const signal =
        random.next() < 0.2 ? AbortSignal.timeout(Math.floor(random.next() * 20)) : undefined
      const waitMs = Math.floor(random.next() * 200)
      const asking = service.acquire(key, name, LONG_MS, waitMs, signal)
      const lock = await asking.catch((error: unknown) => {
        if (signal?.aborted !== true) throw error
      })
      if (lock === undefined) continue
      referee.enter(lock)
      if (random.next() < 0.5) granted(await service.renew(lock))
      referee.leave(lock)
      expect(await service.release(lock)).toBe(true)
    }
  })
  await Promise.all(workers)
  expect(referee.grants).toBeGreaterThan(100)
  const { rows } = await admin.query(
    `SELECT lock_key FROM lock_entry WHERE lock_key LIKE 'soak-%' AND expires_at > now()`,
  )
  expect(rows).toEqual([])
})

/** Both processes live in this one, so that what they believe can be compared. */
class Referee {
  grants = 0
  readonly #holders = new Map<string, LockHandle>()
  readonly #highest = new Map<string, bigint>()

  enter(lock: LockHandle): void {
    expect(this.#holders.get(lock.key), 'a second holder').toBeUndefined()
    expect(lock.fencingToken).toBeGreaterThan(this.#highest.get(lock.key) ?? 0n)
    this.#holders.set(lock.key, lock)
    this.#highest.set(lock.key, lock.fencingToken)
    this.grants += 1
  }

  leave(lock: LockHandle): void {
    this.#holders.delete(lock.key)
  }
}
