import { createTestDatabase } from '@dlock/services'
import pg from 'pg'
import { ATTEMPT_TABLE, FENCE_TABLE } from '../src/index.ts'

export interface GuardedDatabase extends AsyncDisposable {
  readonly url: string
  readonly pool: pg.Pool
}

/** An own database with the guard's tables. */
export async function guardedDatabase(): Promise<GuardedDatabase> {
  const database = await createTestDatabase()
  const pool = new pg.Pool({ connectionString: database.url, max: 20 })
  pool.on('error', () => undefined)
  await pool.query(FENCE_TABLE)
  await pool.query(ATTEMPT_TABLE)
  return {
    url: database.url,
    pool,
    [Symbol.asyncDispose]: async () => {
      await pool.end()
      await database[Symbol.asyncDispose]()
    },
  }
}
