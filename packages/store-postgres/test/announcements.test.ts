import assert from 'node:assert/strict'
import type { LockHandle } from '@dlock/lock-api'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PgListenClient, PostgresStore, PostgresStoreOptions } from '../src/index.ts'
import { openStage, type Stage, until } from './stage.ts'

const LONG_MS = 3_600_000

let stage: Stage
let store: PostgresStore

beforeAll(async () => {
  stage = await openStage()
  store = stage.store()
})

afterAll(() => stage[Symbol.asyncDispose]())

/** What a store that listens has heard. */
interface Ear {
  readonly keys: string[]
  gaps: number
  readonly warnings: string[]
  readonly stop: () => Promise<void>
}

async function listenWith(options: Partial<PostgresStoreOptions>): Promise<Ear> {
  const heard = { keys: [] as string[], gaps: 0, warnings: [] as string[] }
  const { waiting } = stage
    .store({
      onWarning: (warning) => heard.warnings.push(warning),
      random: { next: () => 0 },
      ...options,
    })
    .capabilities()
  assert.ok(waiting)
  const stop = await waiting.subscribe(
    (key) => heard.keys.push(key),
    () => {
      heard.gaps += 1
    },
  )
  return Object.assign(heard, { stop })
}

const listen = (): PgListenClient =>
  new pg.Client({ connectionString: stage.url, application_name: 'listener' })

async function acquire(key: string): Promise<LockHandle> {
  const grant = await store.tryInsert(key, 'w', await store.openSession('w', LONG_MS), LONG_MS)
  assert.ok(grant)
  return grant
}

async function want(key: string): Promise<void> {
  expect(await store.capabilities().waiting?.want(key)).toBeGreaterThan(0)
}

test('what nobody wants is announced to nobody, however it ends', async () => {
  const ear = await listenWith({ listen })
  await store.deleteIfOwner('released', (await acquire('released')).fencingToken)
  await acquire('revoked')
  await store.revoke('revoked', 'operator', 'for the test')
  await store.closeSession((await acquire('closed')).sessionId)
  const next = {
    ownerId: 'w',
    sessionId: '00000000-0000-4000-8000-000000000000',
    ttlMs: LONG_MS,
  }
  const dropped = await acquire('dropped')
  await store.capabilities().transfer?.transfer('dropped', dropped.fencingToken, next)
  // Announcements keep the order of the commits: once this one is heard, there was none before.
  await stage.admin.query(`SELECT pg_notify('dlock_freed', 'the last')`)
  await until('the last one is heard', async () => ear.keys.includes('the last'))
  expect(ear.keys).toEqual(['the last'])
  await ear.stop()
})

test('a mark is written once, and the next grant starts without it', async () => {
  const versionOf = async (key: string): Promise<string> => {
    const { rows } = await stage.admin.query('SELECT xmin FROM lock_entry WHERE lock_key = $1', [
      key,
    ])
    return rows[0].xmin
  }
  const grant = await acquire('marked')
  await want('marked')
  const marked = await versionOf('marked')
  await want('marked')
  expect(await versionOf('marked')).toBe(marked)
  await store.deleteIfOwner('marked', grant.fencingToken)
  await acquire('marked')
  const { rows } = await stage.admin.query(
    `SELECT wanted FROM lock_entry WHERE lock_key = 'marked'`,
  )
  expect(rows).toEqual([{ wanted: false }])
})

test('a lost connection is a gap, is warned of once, and another takes its place', async () => {
  const ear = await listenWith({ listen })
  for (let round = 1; round <= 3; round += 1) {
    await stage.admin.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'listener'`,
    )
    // Once when it is lost, and once when it is back.
    await until('it listens again', async () => ear.gaps >= 2 * round)
    const grant = await acquire('heard')
    await want('heard')
    await store.deleteIfOwner('heard', grant.fencingToken)
    await until('the release is heard', async () => ear.keys.length === round)
    expect(ear.warnings).toHaveLength(round)
  }
  await ear.stop()
  expect(ear.gaps).toBe(6)
})

test('P-11: a connection that listens and never hears is found out at start, and polling is said aloud', async () => {
  /** As a pooler in transaction mode: LISTEN is accepted, and leads nowhere. */
  const deaf = (): PgListenClient => {
    const client = new pg.Client({ connectionString: stage.url, application_name: 'listener' })
    const query = client.query.bind(client)
    return Object.assign(client, {
      query: ({ text }: { text: string }) =>
        query({ text: text.startsWith('LISTEN') ? 'SELECT 1' : text }),
    })
  }
  const ear = await listenWith({ listen: deaf, callTimeoutMs: 500, random: { next: () => 1 } })
  expect(ear.warnings).toEqual([expect.stringContaining('waiters poll')])
  await ear.stop()
})

test('without a connection to listen on, polling is said aloud', async () => {
  const ear = await listenWith({})
  expect(ear.warnings).toEqual([expect.stringContaining('waiters poll')])
  await ear.stop()
})

test('a server that cannot be reached does not hold up the start, and is tried again', async () => {
  let reachable = false
  const ear = await listenWith({
    listen: () =>
      reachable ? listen() : new pg.Client({ connectionString: 'postgres://127.0.0.1:1/none' }),
  })
  expect(ear.warnings).toHaveLength(1)
  reachable = true
  await until('it listens', async () => ear.gaps >= 2)
  await stage.admin.query(`SELECT pg_notify('dlock_freed', 'job')`)
  await until('it hears', async () => ear.keys.length === 1)
  await ear.stop()
})

test('who has stopped listening leaves no connection behind', async () => {
  const ear = await listenWith({ listen })
  await ear.stop()
  await until('the listener has gone', async () => {
    const { rows } = await stage.admin.query(
      `SELECT FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'listener'`,
    )
    return rows.length === 0
  })
  await ear.stop()
})
