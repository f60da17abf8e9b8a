import { FencedOutError } from '@dlock/lock-api'
import { MemoryStore } from '@dlock/store-memory'
import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import {
  admit,
  admitOrThrow,
  advanceFence,
  continueGrant,
  continueGrantOrThrow,
  FENCE_TABLE,
  inTransaction,
  type PostgresClient,
  permit,
  permitOrThrow,
  readFence,
  type Verdict,
} from '../src/index.ts'
import { type GuardedDatabase, guardedDatabase } from './guarded-database.ts'

let database: GuardedDatabase
let pool: pg.Pool
beforeAll(async () => {
  database = await guardedDatabase()
  pool = database.pool
  await pool.query('CREATE TABLE item (name TEXT PRIMARY KEY, value TEXT NOT NULL)')
})
afterAll(() => database[Symbol.asyncDispose]())
beforeEach(async () => {
  await pool.query('TRUNCATE dlock_fence, item')
  await pool.query(`INSERT INTO item VALUES ('a', 'old'), ('b', 'old')`)
})

/** PostgreSQL's number for the type BIGINT. */
const INT8 = 20

const transact = <T>(work: (client: PostgresClient) => Promise<T>): Promise<T> =>
  inTransaction(pool, 5_000, work)
const passes = (work: (client: PostgresClient) => Promise<Verdict>): Promise<boolean> =>
  transact(work).then((verdict) => verdict.passed)
const fenceOf = (key: string): Promise<bigint> => transact((client) => readFence(client, key))

test('admission passes once per token and raises the fence', async () => {
  expect(await passes((c) => admit(c, 'k', 7n))).toBe(true)
  expect(await passes((c) => admit(c, 'k', 7n))).toBe(false)
  expect(await passes((c) => admit(c, 'k', 6n))).toBe(false)
  expect(await passes((c) => admit(c, 'k', 8n))).toBe(true)
  expect(await fenceOf('k')).toBe(8n)
})

test('continuation passes for the admitted token alone, and moves nothing', async () => {
  expect(await passes((c) => continueGrant(c, 'k', 7n))).toBe(false)
  await transact((c) => admit(c, 'k', 7n))
  expect(await passes((c) => continueGrant(c, 'k', 7n))).toBe(true)
  expect(await passes((c) => continueGrant(c, 'k', 6n))).toBe(false)
  expect(await passes((c) => continueGrant(c, 'k', 8n))).toBe(false)
  expect(await fenceOf('k')).toBe(7n)
})

test('the plain rule passes again and again, until a higher token was seen', async () => {
  expect(await passes((c) => permit(c, 'k', 7n))).toBe(true)
  expect(await passes((c) => permit(c, 'k', 7n))).toBe(true)
  expect(await passes((c) => permit(c, 'k', 9n))).toBe(true)
  expect(await passes((c) => permit(c, 'k', 7n))).toBe(false)
})

test('FR-16: a refusal carries both tokens, and so does its error', async () => {
  await transact((c) => admit(c, 'k', 9n))
  const refused = { passed: false, key: 'k', presentedToken: 7n, storedToken: 9n }
  expect(await transact((c) => admit(c, 'k', 7n))).toEqual(refused)
  expect(await transact((c) => continueGrant(c, 'k', 7n))).toEqual(refused)
  expect(await transact((c) => permit(c, 'k', 7n))).toEqual(refused)
  for (const orThrow of [admitOrThrow, continueGrantOrThrow, permitOrThrow]) {
    const error = await transact((c) => orThrow(c, 'k', 7n)).catch((e: unknown) => e)
    expect(error).toBeInstanceOf(FencedOutError)
    expect(error).toMatchObject({ key: 'k', presentedToken: 7n, storedToken: 9n })
  }
})

test('P-25: tokens are compared as numbers, exactly, beyond 2^53', async () => {
  const big = 2n ** 62n
  await transact((c) => admit(c, 'k', 9n))
  expect(await passes((c) => admit(c, 'k', 10n))).toBe(true)
  await transact((c) => admit(c, 'k', big))
  expect(await passes((c) => admit(c, 'k', big + 1n))).toBe(true)
  expect(await transact((c) => admit(c, 'k', big))).toMatchObject({ storedToken: big + 1n })
})

test('P-25: a driver that reads BIGINT as a JavaScript number changes nothing', async () => {
  const lossy: PostgresClient = {
    query: (text, values) =>
      pool.query({
        text,
        values: values ?? [],
        types: { getTypeParser: (oid: number) => (oid === INT8 ? Number : String) } as never,
      }),
  }
  const big = 2n ** 53n + 1n
  await admit(lossy, 'k', big)
  expect(await readFence(lossy, 'k')).toBe(big)
})

test('P-26: one fence per key: a row that the new holder has not touched is closed too', async () => {
  const write = (token: bigint, name: string, value: string): Promise<void> =>
    transact(async (client) => {
      await permitOrThrow(client, 'items', token)
      await client.query('UPDATE item SET value = $2 WHERE name = $1', [name, value])
    })
  await write(1n, 'a', 'first')
  await write(2n, 'a', 'second')
  await expect(write(1n, 'b', 'late')).rejects.toThrow(FencedOutError)
  const { rows } = await pool.query('SELECT value FROM item WHERE name = $1', ['b'])
  expect(rows).toEqual([{ value: 'old' }])
})

test('P-27: raise, then read: what the new holder reads, no late write changes', async () => {
  await transact((c) => permit(c, 'items', 1n))
  const old = await pool.connect()
  try {
    // The old holder's late write: checked, written, not yet committed.
    await old.query('BEGIN')
    await permitOrThrow(old, 'items', 1n)
    await old.query(`UPDATE item SET value = 'late' WHERE name = 'a'`)

    const steps: string[] = []
    const read = transact(async (client) => {
      await admitOrThrow(client, 'items', 2n)
      steps.push('raised')
      const { rows } = await client.query(`SELECT value FROM item WHERE name = 'a'`)
      return rows
    })
    await lockWaiter()
    steps.push('old commits')
    await old.query('COMMIT')

    expect(await read).toEqual([{ value: 'late' }])
    expect(steps).toEqual(['old commits', 'raised'])
    await old.query('BEGIN')
    await expect(permitOrThrow(old, 'items', 1n)).rejects.toThrow(FencedOutError)
    await old.query('ROLLBACK')
  } finally {
    old.release(true)
  }
})

test('a continuation holds back whoever would raise the fence until it has committed', async () => {
  await transact((c) => admit(c, 'items', 1n))
  const old = await pool.connect()
  try {
    await old.query('BEGIN')
    expect(await continueGrant(old, 'items', 1n)).toEqual({ passed: true })
    const raised = transact((c) => admit(c, 'items', 2n))
    await lockWaiter()
    await old.query('COMMIT')
    expect(await raised).toEqual({ passed: true })
  } finally {
    old.release(true)
  }
})

test('a refusal that waited for the winner tells the winner’s token', async () => {
  const winner = await pool.connect()
  try {
    await winner.query('BEGIN')
    await admitOrThrow(winner, 'new', 9n)
    const loser = transact((c) => admit(c, 'new', 7n))
    await lockWaiter()
    await winner.query('COMMIT')
    expect(await loser).toMatchObject({ passed: false, storedToken: 9n })
  } finally {
    winner.release(true)
  }
})

test('rolled back, an admission has raised nothing', async () => {
  const failing = transact(async (client) => {
    await admitOrThrow(client, 'k', 7n)
    throw new Error('the write failed')
  })
  await expect(failing).rejects.toThrow('the write failed')
  expect(await fenceOf('k')).toBe(0n)
})

test('INV-05: of many concurrent admissions the fence is the highest, and it only went up', async () => {
  const tokens = Array.from({ length: 40 }, (_, i) => BigInt(((i * 17) % 40) + 1))
  const passed = await Promise.all(
    tokens.map((token) =>
      transact(async (c) => {
        const verdict = await admit(c, 'k', token)
        if (verdict.passed)
          await c.query(`UPDATE item SET value = value || ',' || $1`, [`${token}`])
        return verdict.passed
      }),
    ),
  )
  expect(passed).toContain(true)
  expect(await fenceOf('k')).toBe(40n)
  const { rows } = await pool.query<{ value: string }>(`SELECT value FROM item WHERE name = 'a'`)
  const order = rows[0]?.value.split(',').slice(1).map(Number) ?? []
  expect(order).toEqual([...order].sort((a, b) => a - b))
  expect(order.at(-1)).toBe(40)
})

test('a floor goes forward only, and closes every rule to the tokens below it', async () => {
  const push = (floor: bigint): Promise<bigint> => transact((c) => advanceFence(c, 'k', floor))
  await transact((c) => admit(c, 'k', 7n))
  expect(await push(8n)).toBe(8n)
  expect(await push(3n)).toBe(8n)
  expect(await passes((c) => continueGrant(c, 'k', 7n))).toBe(false)
  expect(await passes((c) => permit(c, 'k', 7n))).toBe(false)
  expect(await passes((c) => admit(c, 'k', 9n))).toBe(true)
})

test('P-28: a revocation’s own floor fences its holder out and lets the next one in', async () => {
  const store = new MemoryStore()
  const session = await store.openSession('worker', 60_000)
  const stale = await store.tryInsert('k', 'worker', session, 60_000)
  if (stale === undefined) throw new Error('not granted')
  await transact((c) => permit(c, 'k', stale.fencingToken))

  const { newTokenFloor } = await store.revoke('k', 'operator', 'it hangs')
  if (newTokenFloor === undefined) throw new Error('not revoked')
  await transact((c) => advanceFence(c, 'k', newTokenFloor))

  expect(await passes((c) => permit(c, 'k', stale.fencingToken))).toBe(false)
  const next = await store.tryInsert('k', 'worker', session, 60_000)
  expect(next).toBeDefined()
  expect(await passes((c) => admit(c, 'k', next?.fencingToken ?? 0n))).toBe(true)
})

test('P-28: a made-up floor is refused, or the store is raised first', async () => {
  const store = new MemoryStore()
  const { tokens } = store.capabilities()
  if (tokens === undefined) throw new Error('no token capability')
  const session = await store.openSession('worker', 60_000)
  const push = async (floor: bigint): Promise<bigint> => {
    const highest = await tokens.highestToken()
    return transact((c) => advanceFence(c, 'k', floor, highest))
  }
  await expect(push(1_000_000n)).rejects.toThrow(RangeError)
  expect(await fenceOf('k')).toBe(0n)

  await tokens.advanceTokens(1_000_000n)
  expect(await push(1_000_000n)).toBe(1_000_000n)
  const next = await store.tryInsert('k', 'worker', session, 60_000)
  expect(await passes((c) => admit(c, 'k', next?.fencingToken ?? 0n))).toBe(true)
})

test('the table may be created again, and bad arguments never reach it', async () => {
  await pool.query(FENCE_TABLE)
  await expect(admit(pool, '', 1n)).rejects.toThrow(/key must not be blank/)
  await expect(admit(pool, 'k', 0n)).rejects.toThrow(/fencingToken must be from 1 to/)
  await expect(advanceFence(pool, 'k', 0n)).rejects.toThrow(/floor must be from 1 to/)
})

/** Resolves once some connection of this database waits for a row. */
async function lockWaiter(): Promise<void> {
  for (;;) {
    const { rows } = await pool.query(
      `SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    )
    if (rows.length > 0) return
  }
}
