import { createTestDatabase, type TestDatabase } from '@dlock/services'
import { describeLockStore } from '@dlock/tck'
import { afterAll, beforeAll } from 'vitest'
import { fixtureOf, migratedSchema, type Schema } from './schema.ts'

let database: TestDatabase
let schema: Schema

beforeAll(async () => {
  database = await createTestDatabase()
  schema = await migratedSchema(database.url)
})

afterAll(async () => {
  await schema[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

describeLockStore(
  'PostgresStore',
  fixtureOf(() => schema),
)
