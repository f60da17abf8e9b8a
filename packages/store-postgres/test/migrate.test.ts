import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { createTestDatabase, type TestDatabase } from '@dlock/services'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { migrate } from '../src/index.ts'

const FOLDER = new URL('../sql/', import.meta.url)

/** A released file never changes: what a database has run must be what is written. */
const RELEASED: Readonly<Record<string, string>> = {
  '0001-locks.sql': '256d831d4ca0eeef6f2a6d534888dddc9451eae214afbcfd7bffb3704116697b',
}

let database: TestDatabase
const pools: pg.Pool[] = []

beforeAll(async () => {
  database = await createTestDatabase()
})

afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.end()))
  await database[Symbol.asyncDispose]()
})

function openPool(): pg.Pool {
  const pool = new pg.Pool({ connectionString: database.url, max: 2 })
  pool.on('error', () => {})
  pools.push(pool)
  return pool
}

test('eight replicas that start at once make one schema', async () => {
  await Promise.all(Array.from({ length: 8 }, () => migrate(openPool())))
  const { rows } = await openPool().query('SELECT name FROM dlock_migration ORDER BY name')
  const files = (await readdir(FOLDER)).toSorted()
  expect(rows.map(({ name }) => `${name}.sql`)).toEqual(files)
})

test('INV-04: migrating again touches neither the sequence nor the rows', async () => {
  const pool = openPool()
  const { rows: before } = await pool.query(`SELECT nextval('fencing_token_seq') AS token`)
  await pool.query(
    `INSERT INTO lock_entry VALUES ('job', 'w', gen_random_uuid(), $1, now(), now(), false)`,
    [before[0].token],
  )
  await migrate(pool)
  const { rows: after } = await pool.query(`SELECT nextval('fencing_token_seq') AS token`)
  expect(BigInt(after[0].token)).toBe(BigInt(before[0].token) + 1n)
  const { rows: kept } = await pool.query('SELECT FROM lock_entry')
  expect(kept).toHaveLength(1)
})

test('the sequence is 64 bits wide, and does not start again at its end', async () => {
  const { rows } = await openPool().query(
    `SELECT data_type, cycle, max_value, cache_size FROM pg_sequences
     WHERE sequencename = 'fencing_token_seq'`,
  )
  expect(rows).toEqual([
    {
      data_type: 'bigint',
      cycle: false,
      max_value: '9223372036854775807',
      // More would hand each connection numbers of its own, out of order.
      cache_size: '1',
    },
  ])
})

test('FR-08: the audit records can only be added to', async () => {
  const pool = openPool()
  await pool.query(
    `INSERT INTO lock_revocation
       (lock_key, prev_owner, prev_token, new_token_floor, operator, reason, revoked_at)
     VALUES ('job', 'w', 1, 2, 'operator', 'reason', now())`,
  )
  for (const tampering of [
    `UPDATE lock_revocation SET operator = 'nobody'`,
    'DELETE FROM lock_revocation',
    'TRUNCATE lock_revocation',
  ]) {
    await expect(pool.query(tampering)).rejects.toThrow('append-only')
  }
})

test('a schema that is newer than this code is refused in words', async () => {
  const pool = openPool()
  await pool.query(`INSERT INTO dlock_migration VALUES ('9999-from-the-future', now())`)
  await expect(migrate(pool)).rejects.toThrow(/9999-from-the-future/)
  await pool.query(`DELETE FROM dlock_migration WHERE name = '9999-from-the-future'`)
})

test('released migrations are immutable', async () => {
  for (const name of (await readdir(FOLDER)).toSorted()) {
    const digest = createHash('sha256')
      .update(await readFile(new URL(name, FOLDER)))
      .digest('hex')
    expect([name, RELEASED[name]]).toEqual([name, digest])
  }
})
