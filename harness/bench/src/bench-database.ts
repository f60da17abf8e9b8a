import { createDatabase, type LocalPostgres, startLocalPostgres } from '@dlock/local-postgres'
import { openPostgresStore } from '@dlock/store-postgres'
import pg from 'pg'

/** One durable PostgreSQL for the whole run, with the store's schema and one session for the bare. */
export class BenchDatabase implements AsyncDisposable {
  readonly url: string
  readonly version: string
  /** Lives for the whole run, for statements that bring no client of their own. */
  readonly sessionId: string
  readonly #postgres: LocalPostgres
  readonly #pool: pg.Pool

  static async start(): Promise<BenchDatabase> {
    const postgres = await startLocalPostgres({
      settings: { max_connections: '400', shared_buffers: '256MB' },
    })
    const url = await createDatabase(postgres.url())
    const pool = new pg.Pool({ connectionString: url, max: 4, statement_timeout: 10_000 })
    const store = await openPostgresStore({ pool })
    const sessionId = await store.openSession('bench', 86_400_000)
    return new BenchDatabase(postgres, url, pool, sessionId)
  }

  private constructor(postgres: LocalPostgres, url: string, pool: pg.Pool, sessionId: string) {
    this.#postgres = postgres
    this.#pool = pool
    this.url = url
    this.version = postgres.version
    this.sessionId = sessionId
  }

  /** Somebody waits for `key`, and its holder's release will be announced to other processes. */
  async isWanted(key: string): Promise<boolean> {
    const { rows } = await this.#pool.query<{ wanted: boolean }>(
      'SELECT wanted FROM lock_entry WHERE lock_key = $1',
      [key],
    )
    return rows[0]?.wanted ?? false
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.end()
    await this.#postgres.stop()
  }
}
