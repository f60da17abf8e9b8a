import { createDatabase, type LocalPostgres, startLocalPostgres } from '@dlock/local-postgres'
import { describeLockStore } from '@dlock/tck'
import { afterAll, beforeAll } from 'vitest'
import { fixtureOf, migratedSchema, type Schema } from './schema.ts'

/** The PostgreSQL that npm brings, which keeps the locks when nothing is configured. */

let postgres: LocalPostgres
let schema: Schema

beforeAll(async () => {
  postgres = await startLocalPostgres({ binaries: 'npm' })
  schema = await migratedSchema(await createDatabase(postgres.url()))
})

afterAll(async () => {
  await schema[Symbol.asyncDispose]()
  await postgres.stop()
})

describeLockStore(
  'PostgresStore on the embedded PostgreSQL',
  fixtureOf(() => schema),
)
