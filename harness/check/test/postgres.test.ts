import { LockEngine } from '@dlock/engine'
import { createTestDatabase } from '@dlock/services'
import { openPostgresStore } from '@dlock/store-postgres'
import { systemClock } from '@dlock/system'
import pg from 'pg'
import { expect, test } from 'vitest'
import { check, describeVerdict, operationsOf } from '../src/index.ts'
import { crowd } from './crowd.ts'

test('two engines on a real PostgreSQL, with answers lost and requests late: linearizable', async () => {
  await using database = await createTestDatabase()
  const pools = [1, 2].map(() => new pg.Pool({ connectionString: database.url, max: 4 }))
  const engines: LockEngine[] = []
  for (const pool of pools) {
    const listen = (): pg.Client => new pg.Client({ connectionString: database.url })
    const engine = new LockEngine({ store: await openPostgresStore({ pool, listen }) })
    await engine.start()
    engines.push(engine)
  }
  const load = { clients: 8, turns: 10, faults: 0.2, ttlMs: 200, waits: true }
  const history = await crowd({
    ...load,
    clock: systemClock,
    seed: 1,
    backend: 'pg',
    services: engines,
  })
  await Promise.all(engines.map((engine) => engine.close()))
  await Promise.all(pools.map((pool) => pool.end()))

  const calls = operationsOf(history.events)
  expect(calls.filter((op) => op.type === 'info').length).toBeGreaterThan(5)
  expect(describeVerdict(check(history))).toMatch(/^linearizable/)
})
