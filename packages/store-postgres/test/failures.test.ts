import assert from 'node:assert/strict'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startLocalPostgres } from '@dlock/local-postgres'
import {
  ContentionError,
  type LockHandle,
  NotLeaderError,
  RetryableLockError,
} from '@dlock/lock-api'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openPostgresStore, type PgPool, type PostgresStore } from '../src/index.ts'
import { translate } from '../src/translate-error.ts'
import { editedPool } from './edited-pool.ts'
import { openStage, type Stage, untilBlocked } from './stage.ts'

const LONG_MS = 3_600_000

let stage: Stage
let store: PostgresStore

beforeAll(async () => {
  stage = await openStage()
  store = stage.store()
})

afterAll(() => stage[Symbol.asyncDispose]())

async function acquire(key: string, by = store): Promise<LockHandle> {
  const grant = await by.tryInsert(key, 'w', await by.openSession('w', LONG_MS), LONG_MS)
  assert.ok(grant)
  return grant
}

describe('the table of what PostgreSQL says', () => {
  const ERROR = { severity: 'ERROR' }

  test.each([
    ['25006', NotLeaderError],
    ['57P03', NotLeaderError],
    ['40001', ContentionError],
    ['40P01', ContentionError],
    ['55P03', ContentionError],
    ['57014', ContentionError],
    ['53300', ContentionError],
    ['08006', ContentionError],
    ['42P01', ContentionError],
    ['XX000', ContentionError],
  ])('%s', (code, type) => {
    const { told, fate } = translate({ ...ERROR, code }, true)
    expect(told).toBeInstanceOf(type)
    expect(told).toBeInstanceOf(RetryableLockError)
    expect(told.message).toContain(code)
    expect(told.cause).toBeUndefined()
    expect(fate).toBe('not-applied')
  })

  test.each(['57P01', '57P02', '08P01'])(
    '%s, when fatal, may have come after the commit',
    (code) => {
      const { told, fate, breaksConnection } = translate({ severity: 'FATAL', code }, true)
      expect(told).toBeInstanceOf(ContentionError)
      expect(fate).toBe('unknown')
      expect(breaksConnection).toBe(true)
    },
  )

  test('a server that speaks another language is understood by its codes', () => {
    const fateOf = (severity: string, code: string) => translate({ severity, code }, true).fate
    for (const code of ['55P03', '40P01', '57014', '25006', '26000', '42P01', '2200H']) {
      expect(fateOf('FEHLER', code), code).toBe('not-applied')
      expect(fateOf('FATAL', code), code).toBe('unknown')
    }
    for (const code of ['57P01', '57P02', '08006', 'XX000', '40001', '25P03']) {
      expect(fateOf('ВАЖНО', code), code).toBe('unknown')
    }
  })

  test('whatever else is thrown is contention: unknown once the statement was sent', () => {
    for (const odd of [new Error('read ECONNRESET'), undefined, null, 'text', { code: 7 }]) {
      expect(translate(odd, true)).toMatchObject({ fate: 'unknown', breaksConnection: true })
      expect(translate(odd, false)).toMatchObject({ fate: 'not-applied', breaksConnection: false })
      expect(translate(odd, true).told).toBeInstanceOf(ContentionError)
    }
  })

  test('no word of the server’s, and so no key or id, is in what the caller is told', () => {
    const secret = { ...ERROR, code: '23505', message: 'the secret', detail: 'the secret' }
    expect(translate(secret, true).told.message).not.toContain('secret')
  })
})

test('a backend that is killed under a statement: it may have happened, and the next call works', async () => {
  const grant = await acquire('killed')
  const blocker = await stage.client()
  await blocker.query('BEGIN')
  await blocker.query(`SELECT FROM lock_entry WHERE lock_key = 'killed' FOR UPDATE`)
  const extending = store.extend('killed', grant.fencingToken, LONG_MS)
  const killed = expect(extending).rejects.toThrow(/may have happened/)
  await untilBlocked(stage.admin)
  await stage.admin.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  )
  await killed
  await expect(extending).rejects.toThrow(ContentionError)
  await blocker.query('ROLLBACK')
  const extended = await store.extend('killed', grant.fencingToken, LONG_MS)
  expect(extended?.fencingToken).toBe(grant.fencingToken)
})

test('many callers in a statement that is killed are each told so', async () => {
  const sessionId = await store.openSession('w', LONG_MS)
  const keys = Array.from({ length: 10 }, (_, index) => `many/${index}`)
  const grants = await Promise.all(keys.map((key) => store.tryInsert(key, 'w', sessionId, LONG_MS)))
  const blocker = await stage.client()
  await blocker.query('BEGIN')
  await blocker.query(`SELECT FROM lock_entry WHERE lock_key = 'many/5' FOR UPDATE`)
  const answers = Promise.allSettled(
    grants.map((grant) => store.extend(grant?.key ?? '', grant?.fencingToken ?? 0n, LONG_MS)),
  )
  await untilBlocked(stage.admin)
  await stage.admin.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  )
  for (const answer of await answers) {
    assert.ok(answer.status === 'rejected' && answer.reason instanceof ContentionError)
    expect(answer.reason.message).toContain('may have happened')
  }
  await blocker.query('ROLLBACK')
})

test('a server that takes no writes is not the leader', async () => {
  const options = '-c default_transaction_read_only=on'
  const readOnly = stage.store({ pool: stage.pool({ options }) })
  const grant = await acquire('read-only')
  await expect(readOnly.extend('read-only', grant.fencingToken, LONG_MS)).rejects.toThrow(
    NotLeaderError,
  )
  await expect(readOnly.openSession('w', LONG_MS)).rejects.toThrow(NotLeaderError)
  await expect(readOnly.capabilities().health?.checkHealth()).rejects.toThrow(NotLeaderError)
})

test('a database without the schema says what to do', async () => {
  const missing = stage.store({ pool: stage.pool({ options: '-c search_path=pg_catalog' }) })
  await expect(missing.read('job')).rejects.toThrow(/run this package's migrate/)
})

test('a pooler that mixes up prepared statements is noticed, and nothing fails', async () => {
  const warnings: string[] = []
  const pool = stage.pool({ max: 1 })
  const mixedUp = stage.store({ pool, onWarning: (warning) => warnings.push(warning) })
  const grant = await acquire('mixed-up', mixedUp)
  // As a pooler does: the driver believes that the statement is there, and the server has none.
  await pool.query('DEALLOCATE ALL')
  const extended = await mixedUp.extend('mixed-up', grant.fencingToken, LONG_MS)
  expect(extended?.fencingToken).toBe(grant.fencingToken)
  await pool.query('DEALLOCATE ALL')
  expect(await mixedUp.deleteIfOwner('mixed-up', grant.fencingToken)).toBe(true)
  await acquire('mixed-up', mixedUp)
  expect(warnings).toHaveLength(1)
  expect(warnings[0]).toContain('preparedStatements')
})

test('P-15: a server that goes away makes calls fail by type, and is used again when it is back', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'store-postgres-'))
  await chmod(folder, 0o755)
  const first = await startLocalPostgres({ folder })
  const { port } = first
  const pool = new pg.Pool({ connectionString: first.url() })
  pool.on('error', () => {})
  const errors: unknown[] = []
  const store = await openPostgresStore({
    pool,
    onWarning: () => {},
    onDriverError: (error) => errors.push(error),
  })
  const grant = await acquire('job', store)
  await first.stop()
  const answers = await Promise.allSettled([
    store.extend('job', grant.fencingToken, LONG_MS),
    store.tryInsert('job2', 'w', grant.sessionId, LONG_MS),
    store.heartbeat(grant.sessionId, LONG_MS),
    store.read('job'),
  ])
  for (const answer of answers) {
    assert.ok(answer.status === 'rejected' && answer.reason instanceof RetryableLockError)
  }
  expect(errors.length).toBeGreaterThan(0)

  const second = await startLocalPostgres({ folder, port })
  const extended = await store.extend('job', grant.fencingToken, LONG_MS)
  expect(extended?.fencingToken).toBe(grant.fencingToken)
  await pool.end()
  await second.stop()
  await rm(folder, { recursive: true })
})

test('a server that may lose what it has answered is warned of', async () => {
  const warningsOf = async (pool: PgPool): Promise<string[]> => {
    const warnings: string[] = []
    await openPostgresStore({ pool, onWarning: (warning) => warnings.push(warning) })
    return warnings
  }
  expect(await warningsOf(stage.pool())).toEqual([])
  const hasty = stage.pool({ options: '-c synchronous_commit=off' })
  expect(await warningsOf(hasty)).toEqual([expect.stringMatching(/^synchronous_commit is off/)])
  // The test's server cannot be made to run so.
  const unsafe = editedPool(stage.pool(), [`current_setting('fsync')`, `'off'`])
  expect(await warningsOf(unsafe)).toEqual([expect.stringMatching(/^fsync is off/)])
})
