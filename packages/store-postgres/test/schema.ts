import { systemClock } from '@dlock/system'
import type { StoreFixture } from '@dlock/tck'
import pg from 'pg'
import { migrate, type PgPool, PostgresStore, type PostgresStoreOptions } from '../src/index.ts'

/** A migrated database, and who looks at it from outside the store. */
export interface Schema extends AsyncDisposable {
  readonly url: string
  readonly admin: pg.Pool
  /** As if it had just been migrated, but for the sequence, which nobody ever resets. */
  empty(): Promise<void>
}

export async function migratedSchema(url: string): Promise<Schema> {
  const admin = new pg.Pool({ connectionString: url, max: 4, application_name: 'admin' })
  admin.on('error', () => {})
  await migrate(admin)
  return {
    url,
    admin,
    async empty() {
      const client = await admin.connect()
      // The audit table refuses; only a superuser's replica may.
      await client.query('SET session_replication_role = replica')
      await client.query('TRUNCATE lock_entry, lock_session, lock_revocation')
      client.release(true)
    },
    [Symbol.asyncDispose]: () => admin.end(),
  }
}

const CAPABILITIES = [
  'waiting',
  'transfer',
  'sessions',
  'listing',
  'audit',
  'tokens',
  'health',
] as const

export interface FixtureOptions extends Partial<Omit<PostgresStoreOptions, 'pool'>> {
  /** Where the stores' pools go, when not straight to the server. */
  readonly poolUrl?: () => string
  /** What lies between a store and its pool. */
  readonly through?: (pool: pg.Pool) => PgPool
}

export function fixtureOf(schema: () => Schema, options: FixtureOptions = {}): StoreFixture {
  const { poolUrl = () => schema().url, through = (pool) => pool, ...storeOptions } = options
  return {
    capabilities: CAPABILITIES,
    async open() {
      const { url, admin } = schema()
      await schema().empty()
      const pools: pg.Pool[] = []
      const open = (): PostgresStore => {
        const pool = new pg.Pool({ connectionString: poolUrl(), max: 8 })
        pool.on('error', () => {})
        pools.push(pool)
        return new PostgresStore({
          pool: through(pool),
          listen: () => new pg.Client({ connectionString: url }),
          callTimeoutMs: 10_000,
          ...storeOptions,
        })
      }
      return {
        store: open(),
        clock: systemClock,
        openReplica: async () => open(),
        async killSession(sessionId) {
          await admin.query('UPDATE lock_session SET expires_at = now() WHERE session_id = $1', [
            sessionId,
          ])
        },
        // By the server's clock; this process's timers may be early by it.
        waitMs: async (ms) => {
          await admin.query('SELECT pg_sleep($1::float8 / 1000)', [ms])
        },
        async close() {
          await Promise.all(pools.map((pool) => pool.end()))
        },
      }
    },
  }
}
