import { setTimeout as pause } from 'node:timers/promises'
import { createDatabase, startLocalPostgres } from '@dlock/local-postgres'
import { createTestDatabase } from '@dlock/services'
import pg from 'pg'
import { PostgresStore, type PostgresStoreOptions } from '../src/index.ts'
import { migratedSchema, type Schema } from './schema.ts'

/** A database with stores on it, for one test file or one test. Leaves no connection behind. */
export interface Stage extends AsyncDisposable {
  readonly url: string
  /** Looks on, and interferes, from outside the store. */
  readonly admin: pg.Pool
  store(options?: Partial<PostgresStoreOptions>): PostgresStore
  pool(config?: pg.PoolConfig): pg.Pool
  /** A connection of its own, for what holds locks. */
  client(): Promise<pg.Client>
}

export async function openStage(): Promise<Stage> {
  const database = await createTestDatabase()
  const dropDatabase = async (): Promise<void> => database[Symbol.asyncDispose]()
  return stageOn(await migratedSchema(database.url), dropDatabase)
}

/**
 * On a PostgreSQL of its own. What may be swept, and what a page may be cleared of, waits for every
 * older transaction of the whole server: those of other test files would decide a test.
 */
export async function openStageAlone(): Promise<Stage> {
  const postgres = await startLocalPostgres()
  return stageOn(await migratedSchema(await createDatabase(postgres.url())), () => postgres.stop())
}

function stageOn(schema: Schema, dropDatabase: () => Promise<void>): Stage {
  const ends: (() => Promise<unknown>)[] = []
  const { url, admin } = schema
  const openPool = (config: pg.PoolConfig = {}): pg.Pool => {
    const pool = new pg.Pool({ connectionString: url, max: 8, ...config })
    pool.on('error', () => {})
    ends.push(() => pool.end())
    return pool
  }
  return {
    url,
    admin,
    pool: openPool,
    store: (options = {}) =>
      new PostgresStore({ pool: openPool(), callTimeoutMs: 30_000, ...options }),
    async client() {
      const client = new pg.Client({ connectionString: url })
      client.on('error', () => {})
      await client.connect()
      ends.push(() => client.end())
      return client
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(ends.map((end) => end()))
      await noBackendLeft(admin)
      await schema[Symbol.asyncDispose]()
      await dropDatabase()
    },
  }
}

/** The leak check: whoever connected to the database has gone, but for who asks. */
async function noBackendLeft(admin: pg.Pool): Promise<void> {
  await until('every backend of the stores has gone', async () => {
    const { rows } = await admin.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database()
       AND pid <> pg_backend_pid() AND application_name <> 'admin'`,
    )
    return rows.length === 0
  })
}

/** Waits for a sign that can only be looked for. */
export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await holds()); tries += 1) {
    if (tries > 2_000) throw new Error(`waited in vain until ${what}`)
    await pause(5)
  }
}

/** So many statements wait for a lock: of a row, or an advisory one. */
export async function untilBlocked(admin: pg.Pool, count = 1): Promise<void> {
  await until(`${count} statements are blocked`, async () => {
    const { rows } = await admin.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    )
    return rows.length >= count
  })
}
