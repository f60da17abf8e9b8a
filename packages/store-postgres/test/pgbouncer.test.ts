import { createTestDatabase, type TestDatabase } from '@dlock/services'
import { describeLockStore } from '@dlock/tck'
import pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { migrate, openPostgresStore } from '../src/index.ts'
import { type PgBouncer, startPgBouncer } from './pgbouncer.ts'
import { fixtureOf, migratedSchema, type Schema } from './schema.ts'

/** P-11: a real PgBouncer in transaction pooling, of a version that loses prepared statements. */

let database: TestDatabase
let schema: Schema
let pooler: PgBouncer

beforeAll(async () => {
  database = await createTestDatabase()
  pooler = await startPgBouncer(database.url)
}, 300_000)

afterAll(async () => {
  await schema[Symbol.asyncDispose]()
  await pooler[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

test('P-11: eight replicas migrate at once through the pooler', async () => {
  const pools = Array.from({ length: 8 }, () => new pg.Pool({ connectionString: pooler.url }))
  await Promise.all(pools.map((pool) => migrate(pool)))
  await Promise.all(pools.map((pool) => pool.end()))
  schema = await migratedSchema(database.url)
})

describeLockStore(
  'PostgresStore behind PgBouncer',
  fixtureOf(() => schema, { preparedStatements: false, poolUrl: () => pooler.url }),
)

test('P-11: who listens through the pooler is told that waiters poll', async () => {
  const pool = new pg.Pool({ connectionString: pooler.url })
  const warnings: string[] = []
  const store = await openPostgresStore({
    pool,
    listen: () => new pg.Client({ connectionString: pooler.url }),
    callTimeoutMs: 1_000,
    preparedStatements: false,
    onWarning: (warning) => warnings.push(warning),
  })
  const stop = await store.capabilities().waiting?.subscribe(
    () => {},
    () => {},
  )
  expect(warnings).toContainEqual(expect.stringContaining('waiters poll'))
  await stop?.()
  await pool.end()
})

test('P-11: who forgot to switch prepared statements off is warned, and goes on without', async () => {
  const pool = new pg.Pool({ connectionString: pooler.url, max: 4 })
  onTestFinished(() => pool.end())
  const warnings: string[] = []
  const store = await openPostgresStore({
    pool,
    callTimeoutMs: 10_000,
    onWarning: (warning) => warnings.push(warning),
  })
  const sessionId = await store.openSession('w', 60_000)
  for (let round = 0; round < 20; round += 1) {
    const grants = await Promise.all(
      ['a', 'b', 'c'].map((key) => store.tryInsert(key, 'w', sessionId, 60_000)),
    )
    await Promise.all([store.heartbeat(sessionId, 60_000), store.read('a')])
    for (const grant of grants)
      await store.deleteIfOwner(grant?.key ?? '', grant?.fencingToken ?? 1n)
  }
  expect(warnings).toContainEqual(expect.stringContaining('preparedStatements'))
})

test('P-11: several statements that are mixed up at once are all sent again, and warned of once', async () => {
  const pool = new pg.Pool({ connectionString: pooler.url, max: 4 })
  onTestFinished(() => pool.end())
  for (let round = 0; round < 10; round += 1) {
    const warnings: string[] = []
    const store = await openPostgresStore({
      pool,
      callTimeoutMs: 10_000,
      onWarning: (warning) => warnings.push(warning),
    })
    const sessionId = await store.openSession('w', 60_000)
    const calls = Array.from({ length: 5 }, () => [
      store.heartbeat(sessionId, 60_000),
      store.read('a'),
      store.locksOf(sessionId),
    ])
    await Promise.all(calls.flat())
    const named = warnings.filter((warning) => warning.includes('preparedStatements'))
    expect(named.length).toBeLessThanOrEqual(1)
    await store.closeSession(sessionId)
  }
})
