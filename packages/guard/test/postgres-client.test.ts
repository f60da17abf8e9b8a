import { afterAll, beforeAll, expect, test } from 'vitest'
import { inTransaction, permit, readFence } from '../src/index.ts'
import { type GuardedDatabase, guardedDatabase } from './guarded-database.ts'

let database: GuardedDatabase
beforeAll(async () => {
  database = await guardedDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

test('work that swallows a failed statement is not told that it was committed', async () => {
  const { pool } = database
  const saved = inTransaction(pool, 3_000, async (client) => {
    await permit(client, 'k', 7n)
    await client.query('SELECT 1 / 0').catch(() => undefined)
    return 'saved'
  })
  await expect(saved).rejects.toThrow(/aborted/)
  expect(await readFence(pool, 'k')).toBe(0n)
})

test('committed when it resolves, rolled back when it rejects', async () => {
  const { pool } = database
  await inTransaction(pool, 3_000, (client) => permit(client, 'one', 7n))
  const given = inTransaction(pool, 3_000, async (client) => {
    await permit(client, 'one', 8n)
    throw new Error('mine')
  })
  await expect(given).rejects.toThrow('mine')
  expect(await readFence(pool, 'one')).toBe(7n)
})
