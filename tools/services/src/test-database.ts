import { createDatabase, dropDatabase } from '@dlock/local-postgres'
import { inject } from 'vitest'
import type {} from './postgres.ts'

export interface TestDatabase extends AsyncDisposable {
  /** As the superuser. */
  readonly url: string
}

/** An empty database on the run's PostgreSQL. Whoever takes it disposes of it. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const url = await createDatabase(inject('postgresUrl'))
  return { url, [Symbol.asyncDispose]: () => dropDatabase(url) }
}
