import assert from 'node:assert/strict'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PostgresStore } from '../src/index.ts'
import { openStageAlone, type Stage } from './stage.ts'

const LONG_MS = 3_600_000
const FAR_FUTURE = new Date('9999-01-01T00:00:00Z')

let stage: Stage
let store: PostgresStore

beforeAll(async () => {
  stage = await openStageAlone()
  store = stage.store()
})

afterAll(() => stage[Symbol.asyncDispose]())

async function count(table: string): Promise<number> {
  const { rows } = await stage.admin.query(`SELECT count(*)::int AS count FROM ${table}`)
  return rows[0].count
}

async function pages(): Promise<number> {
  const { rows } = await stage.admin.query(
    `SELECT (pg_relation_size('lock_entry') / 8192)::int AS pages`,
  )
  return rows[0].pages
}

async function sweep(times: number): Promise<void> {
  for (let done = 0; done < times; done += 1) await store.reapExpired(FAR_FUTURE)
}

/** Holds and releases 10 000 keys; returns the highest token. */
async function passThrough(prefix: string): Promise<bigint> {
  const sessionId = await store.openSession('w', LONG_MS)
  const keys = Array.from({ length: 10_000 }, (_, index) => `${prefix}/${index}`)
  const tokens = await Promise.all(
    keys.map(async (key) => {
      const grant = await store.tryInsert(key, 'w', sessionId, LONG_MS)
      assert.ok(grant)
      assert.equal(await store.deleteIfOwner(key, grant.fencingToken), true)
      return grant.fencingToken
    }),
  )
  assert.equal(new Set(tokens).size, keys.length)
  return tokens.reduce((highest, token) => (token > highest ? token : highest))
}

test('P-29: 10 000 past keys leave no row behind, and the table does not grow with the next ones', async () => {
  const first = await passThrough('first')
  await sweep(3)
  expect(await count('lock_entry')).toBe(0)
  await stage.admin.query('VACUUM lock_entry')
  const grown = await pages()

  const second = await passThrough('second')
  await sweep(3)
  await stage.admin.query('VACUUM lock_entry')
  expect(await count('lock_entry')).toBe(0)
  expect(await pages()).toBeLessThanOrEqual(grown)

  // P-24: what guards monotonicity is not in the table.
  const grant = await store.tryInsert('first/1', 'w', await store.openSession('w', LONG_MS), 1)
  expect(second).toBeGreaterThan(first)
  expect(grant?.fencingToken).toBeGreaterThan(second)
})

test('one key that is held again and again takes one row, and one page', async () => {
  await stage.admin.query('TRUNCATE lock_entry')
  const sessionId = await store.openSession('w', LONG_MS)
  for (let round = 0; round < 500; round += 1) {
    const grant = await store.tryInsert('hot', 'w', sessionId, LONG_MS)
    assert.ok(grant && (await store.deleteIfOwner('hot', grant.fencingToken)))
  }
  expect(await count('lock_entry')).toBe(1)
  // Versions of a row that nobody can see are pruned in its page, since no index changes.
  expect(await pages()).toBe(1)
})

test('P-29: sessions that died and were never closed are forgotten, though not at once', async () => {
  await stage.admin.query('TRUNCATE lock_session')
  const sessionId = await store.openSession('w', LONG_MS)
  await stage.admin.query('UPDATE lock_session SET expires_at = now()')
  const describe = () => store.capabilities().sessions?.describeSession(sessionId)
  await sweep(2)
  expect(await describe()).toEqual({ state: 'expired' })
  await stage.admin.query(`UPDATE lock_session SET ended_at = ended_at - interval '11 minutes'`)
  await sweep(1)
  expect(await describe()).toEqual({ state: 'unknown' })
  expect(await count('lock_session')).toBe(0)
})

test('a table of many pages is swept in slices, and all of it in the end', async () => {
  await stage.admin.query('TRUNCATE lock_entry')
  // One row of 4 000 bytes to a page and a half; what is in the row does not matter.
  await stage.admin.query(
    `INSERT INTO lock_entry
     SELECT 'big/' || i, repeat('o', 1900), gen_random_uuid(), i, now(), '-infinity', false
     FROM generate_series(1, 10000) AS i`,
  )
  expect(await pages()).toBeGreaterThan(4_096)
  await stage.admin.query(`SELECT setval('fencing_token_seq', 20000)`)
  const fresh = stage.store()
  for (let done = 0; done < 10; done += 1) await fresh.reapExpired(FAR_FUTURE)
  expect(await count('lock_entry')).toBe(0)
})

test('statements whose plans were made for a tiny table are planned anew when it has grown', async () => {
  const counted = async (): Promise<number> => {
    const { rows } = await stage.admin.query(
      `SELECT relpages FROM pg_class WHERE oid = 'lock_entry'::regclass`,
    )
    return rows[0].relpages
  }
  await stage.admin.query('TRUNCATE lock_entry')
  await stage.admin.query('ANALYZE lock_entry')
  const tiny = await counted()
  const sessionId = await store.openSession('w', LONG_MS)
  await stage.admin.query(
    `INSERT INTO lock_entry
     SELECT 'grown/' || i, 'w', $1, i, now(), now() + interval '1 hour', false
     FROM generate_series(1, 5000) AS i`,
    [sessionId],
  )
  await store.reapExpired(FAR_FUTURE)
  expect(await counted()).toBeGreaterThan(tiny + 8)
})
