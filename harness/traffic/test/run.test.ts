import { LockEngine } from '@dlock/engine'
import { ContentionError } from '@dlock/lock-api'
import { LockClient } from '@dlock/lock-client'
import { createTestDatabase } from '@dlock/services'
import { MemoryStore } from '@dlock/store-memory'
import { systemClock } from '@dlock/system'
import { ScriptedService, seededRandom } from '@dlock/testing'
import pg from 'pg'
import { expect, test } from 'vitest'
import {
  type Cell,
  MemoryCell,
  PostgresCell,
  type Profile,
  type ProfileName,
  profiles,
  type RunResult,
  report,
  run,
} from '../src/index.ts'

const TURNS = 60

/** A profile for so many turns, over an engine in this process. */
async function driven(
  profile: Profile,
  cell: Cell = new MemoryCell(),
  service: (engine: LockEngine) => LockEngine | ScriptedService = (engine) => engine,
): Promise<RunResult> {
  await using engine = new LockEngine({ store: new MemoryStore() })
  await engine.start()
  await using client = new LockClient({ service: service(engine) })
  let turns = 0
  const goOn = (): boolean => {
    turns += 1
    return turns <= TURNS + 2 * profile.clients
  }
  const random = seededRandom(1)
  // Awaited here: client and engine are closed at the end of this block.
  return await run({
    profile,
    client,
    cell,
    clock: systemClock,
    random,
    goOn,
    backend: 'memory',
    seed: 1,
  })
}

/** `long` as it is takes its name seriously. */
const short = { ...profiles.long, ttlMs: 500, holdMs: 5 }

test.each(Object.keys(profiles) as ProfileName[])('%s: the detector reads 0', async (name) => {
  const result = await driven(name === 'long' ? short : profiles[name])
  expect(result.detector.described).toEqual([])
  expect(result.latencies.count('acquire')).toBeGreaterThan(0)
  expect(report(result)).toContain('0 violations')
})

test('the cell may be in PostgreSQL, behind the guard that users have', async () => {
  await using database = await createTestDatabase()
  const pool = new pg.Pool({ connectionString: database.url, max: 8 })
  const cell = await PostgresCell.open(pool)
  const result = await driven(profiles.light, cell)
  expect(result.detector.described).toEqual([])
  await cell.write('k', { owner: 'b', token: 2n })
  const refused = await cell.write('k', { owner: 'a', token: 1n })
  expect(refused).toEqual({ accepted: false, before: { owner: 'b', token: 2n } })
  await pool.end()
})

test('a service that grants one key to everybody is seen, and no figure of it is printed', async () => {
  const result = await driven(profiles.hot, new MemoryCell(), (engine) => {
    const service = new ScriptedService(engine)
    // Each gets a key of its own, and believes that it is the one it asked for.
    service.always('acquire', async (_, { args, sessionId = '' }) => {
      const [, ownerId, ttlMs] = args
      return engine.forSession(sessionId).tryAcquire(`own:${ownerId}`, ownerId, ttlMs)
    })
    return service
  })
  expect(result.detector.violations).toBeGreaterThan(0)
  expect(report(result)).toMatch(/VIOLATIONS.*no figure/)
  expect(report(result)).not.toContain('p50')
})

test('every call is written down, with an end that says what its client knows', async () => {
  const result = await driven({ ...profiles.hot, clients: 4 }, new MemoryCell(), (engine) => {
    const service = new ScriptedService(engine)
    service.next('release', async (proceed) => {
      await proceed()
      throw new ContentionError('the answer was lost')
    })
    return service
  })
  const [history] = result.histories
  expect(result.histories).toHaveLength(1)
  expect(history?.header).toMatchObject({ key: 'hot', seed: 1, backend: 'memory' })
  const lines = (type: string, f: string): number =>
    (history?.events ?? []).filter((event) => event.type === type && event.f === f).length
  expect(lines('ok', 'acquire')).toBe(lines('invoke', 'acquire'))
  expect(lines('info', 'release')).toBe(1)
  expect(lines('ok', 'release')).toBe(lines('invoke', 'release') - 1)
  expect(result.errors).toBe(1)
})
