import assert from 'node:assert/strict'
import { ContentionError, type LockHandle } from '@dlock/lock-api'
import { systemClock } from '@dlock/system'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { PostgresStore } from '../src/index.ts'
import { openStage, type Stage, until, untilBlocked } from './stage.ts'

const LONG_MS = 3_600_000

let stage: Stage
let store: PostgresStore
let round = 0
let job: string

beforeAll(async () => {
  stage = await openStage()
  store = stage.store()
})

afterAll(() => stage[Symbol.asyncDispose]())

beforeEach(() => {
  round += 1
  job = `job/${round}`
})

/** Somebody's transaction keeps the row of `key` locked until it is told to end. */
async function keepLocked(key: string): Promise<() => Promise<unknown>> {
  const client = await stage.client()
  await client.query('BEGIN')
  await client.query('SELECT FROM lock_entry WHERE lock_key = $1 FOR UPDATE', [key])
  return () => client.query('ROLLBACK')
}

async function acquire(key = job, ttlMs = LONG_MS): Promise<LockHandle> {
  const grant = await store.tryInsert(key, 'w', await store.openSession('w', LONG_MS), ttlMs)
  assert.ok(grant)
  return grant
}

describe('P-09: a row that somebody else keeps locked', () => {
  test('makes every verb that needs it a ContentionError within the deadline, and nothing is lost', async () => {
    const hasty = stage.store({ callTimeoutMs: 300 })
    const grant = await acquire()
    const next = { ownerId: 'next', sessionId: await store.openSession('next', LONG_MS), ttlMs: 9 }
    const letGo = await keepLocked(job)
    const { transfer, waiting } = hasty.capabilities()
    const calls = [
      () => hasty.extend(job, grant.fencingToken, LONG_MS),
      () => hasty.deleteIfOwner(job, grant.fencingToken),
      () => hasty.revoke(job, 'operator', 'for the test'),
      () => hasty.closeSession(grant.sessionId),
      () => hasty.tryInsert(job, 'w', grant.sessionId, LONG_MS),
      () => transfer?.transfer(job, grant.fencingToken, next),
      () => waiting?.want(job),
    ]
    for (const call of calls) {
      await expect(call(), call.toString()).rejects.toThrow(ContentionError)
    }
    await letGo()
    const extended = await store.extend(job, grant.fencingToken, LONG_MS)
    expect(extended?.fencingToken).toBe(grant.fencingToken)
  })

  test('is waited for, and the lease is then no shorter than its holder believes', async () => {
    const grant = await acquire()
    const letGo = await keepLocked(job)
    const extending = store.extend(job, grant.fencingToken, 2 * LONG_MS)
    await untilBlocked(stage.admin)
    await letGo()
    const extended = await extending
    const { rows } = await stage.admin.query(
      `SELECT date_part('epoch', expires_at - now()) * 1000 AS left_ms FROM lock_entry
       WHERE lock_key = $1`,
      [job],
    )
    const believedNanos = (extended?.clientDeadlineNanos ?? 0n) - systemClock.monotonicNanos()
    expect(rows[0].left_ms).toBeGreaterThanOrEqual(Number(believedNanos) / 1_000_000)
  })

  test('and whose lease is over is had once it is let go', async () => {
    const old = await acquire()
    await stage.admin.query('UPDATE lock_entry SET expires_at = now() WHERE lock_key = $1', [job])
    const letGo = await keepLocked(job)
    const taking = acquire()
    await untilBlocked(stage.admin)
    await letGo()
    expect((await taking).fencingToken).toBeGreaterThan(old.fencingToken)
    expect(await store.extend(job, old.fencingToken, LONG_MS)).toBeUndefined()
  })

  test('fails nobody who only shares the statement', async () => {
    const patient = stage.store({ callTimeoutMs: 4_000 })
    const sessionId = await store.openSession('w', LONG_MS)
    const keys = Array.from({ length: 20 }, (_, index) => `${job}/${index}`)
    const grants = await Promise.all(
      keys.map(async (key) => store.tryInsert(key, 'w', sessionId, LONG_MS)),
    )
    const letGo = await keepLocked(`${job}/0`)
    const answers = await Promise.allSettled(
      grants.map((grant, index) =>
        patient.extend(keys[index] ?? '', grant?.fencingToken ?? 0n, LONG_MS),
      ),
    )
    await letGo()
    const [blocked, ...others] = answers
    assert.ok(blocked?.status === 'rejected' && blocked.reason instanceof ContentionError)
    for (const [index, answer] of others.entries()) {
      assert.ok(answer.status === 'fulfilled', `neighbour ${index + 1}`)
      expect(answer.value?.fencingToken).toBe(grants[index + 1]?.fencingToken)
    }
  })
})

describe('a pool without a free connection', () => {
  /** Of one connection, which the application has taken. */
  async function exhaustedPool(config: pg.PoolConfig = {}): Promise<[pg.Pool, pg.PoolClient]> {
    const pool = stage.pool({ max: 1, ...config })
    return [pool, await pool.connect()]
  }

  test('P-19: makes extend a ContentionError when the pool gives up, never "lost"', async () => {
    const grant = await acquire()
    const [pool, taken] = await exhaustedPool({ connectionTimeoutMillis: 50 })
    const starved = stage.store({ pool })
    await expect(starved.extend(job, grant.fencingToken, LONG_MS)).rejects.toThrow(ContentionError)
    await expect(starved.heartbeat(grant.sessionId, LONG_MS)).rejects.toThrow(ContentionError)
    await expect(starved.deleteIfOwner(job, grant.fencingToken)).rejects.toThrow(ContentionError)
    taken.release()
    const extended = await starved.extend(job, grant.fencingToken, LONG_MS)
    expect(extended?.fencingToken).toBe(grant.fencingToken)
  })

  test('makes every call a ContentionError at its deadline when the pool never gives up', async () => {
    const grant = await acquire()
    const [pool, taken] = await exhaustedPool()
    const starved = stage.store({ pool, callTimeoutMs: 50 })
    const failures = await Promise.allSettled([
      starved.extend(job, grant.fencingToken, LONG_MS),
      starved.read(job),
      starved.closeSession(grant.sessionId),
      starved.reapExpired(new Date()),
    ])
    for (const failure of failures) {
      assert.ok(failure.status === 'rejected' && failure.reason instanceof ContentionError)
      expect(failure.reason.message).toContain('nothing was changed')
    }
    taken.release()
    // The connections that were still asked for came too late, and went back unused.
    await until('the pool is idle', async () => pool.idleCount === 1 && pool.waitingCount === 0)
    expect((await starved.read(job))?.fencingToken).toBe(grant.fencingToken)
  })

  test('P-10: two connections serve twenty callers on one key, with a holder that renews', async () => {
    const narrow = stage.store({ pool: stage.pool({ max: 2 }) })
    const sessions = await Promise.all(
      Array.from({ length: 20 }, () => narrow.openSession('w', LONG_MS)),
    )
    const served = await Promise.all(
      sessions.map(async (sessionId) => {
        for (;;) {
          const grant = await narrow.tryInsert(job, 'w', sessionId, LONG_MS)
          if (grant === undefined) continue
          expect(await narrow.extend(job, grant.fencingToken, LONG_MS)).toBeDefined()
          expect(await narrow.deleteIfOwner(job, grant.fencingToken)).toBe(true)
          return grant.fencingToken
        }
      }),
    )
    expect(new Set(served).size).toBe(20)
  })
})

test('to advance the counter gives up when a transaction that took a token stalls, and stops nobody', async () => {
  const hasty = stage.store({ callTimeoutMs: 300 })
  const stalled = await stage.client()
  await stalled.query('BEGIN')
  await stalled.query(`SELECT nextval('fencing_token_seq')`)
  const { tokens } = hasty.capabilities()
  // Whether the server or this process gives up first is a race, and all the same to the caller.
  await expect(tokens?.advanceTokens(1n)).rejects.toBeInstanceOf(ContentionError)
  expect((await acquire()).fencingToken).toBeGreaterThan(0n)
  await stalled.query('ROLLBACK')
})
