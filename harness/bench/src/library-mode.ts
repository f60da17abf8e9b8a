import { LockEngine } from '@dlock/engine'
import { LockClient } from '@dlock/lock-client'
import { openPostgresStore } from '@dlock/store-postgres'
import pg from 'pg'

const CONNECTIONS = 16

/** Client, engine and store in this process, as an application has them that needs no server. */
export class LibraryMode implements AsyncDisposable {
  readonly client: LockClient
  readonly engine: LockEngine
  readonly #pool: pg.Pool

  static async start(url: string): Promise<LibraryMode> {
    const pool = new pg.Pool({
      connectionString: url,
      max: CONNECTIONS,
      statement_timeout: 10_000,
    })
    const listen = (): pg.Client => new pg.Client({ connectionString: url })
    const store = await openPostgresStore({ pool, listen })
    const engine = new LockEngine({ store })
    await engine.start()
    return new LibraryMode(engine, pool)
  }

  private constructor(engine: LockEngine, pool: pg.Pool) {
    this.engine = engine
    this.client = new LockClient({ service: engine })
    this.#pool = pool
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.close()
    await this.engine.close()
    await this.#pool.end()
  }
}
