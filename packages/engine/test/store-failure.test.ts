import { ContentionError, NotLeaderError } from '@dlock/lock-api'
import { expect, test } from 'vitest'
import { granted, Stage, watch } from './stage.ts'
import { answerLost, type Scene, unreachable } from './staged-store.ts'

test('P-15: the store is down at acquire: unavailable, not "held"', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  stage.store.always('tryInsert', unreachable)
  await expect(worker.take('job')).rejects.toThrow(ContentionError)
  const seen = watch(worker.take('job', 3_000))
  await stage.clock.advance(2_999)
  expect(seen.state).toBe('pending')
  await stage.clock.advance(1)
  expect(seen.error).toBeInstanceOf(ContentionError)
  expect(stage.told('lock_contended')).toHaveLength(0)
})

test('P-15: nor is it "held" for those behind the one that asks', async () => {
  const stage = await Stage.started()
  const [first, second, third] = await stage.workers('first', 'second', 'third')
  stage.store.always('tryInsert', unreachable)
  watch(first.take('job', 9_000))
  const behind = watch(second.take('job', 1_000))
  await stage.clock.advance(500)
  await expect(third.take('job')).rejects.toThrow(ContentionError)
  await stage.clock.advance(500)
  expect(behind.error).toBeInstanceOf(ContentionError)
})

test('P-15: nor is it "held" for one who came after the store had gone', async () => {
  const stage = await Stage.started({ ttlMs: 60_000 })
  const [holder, first, second] = await stage.workers('holder', 'first', 'second')
  await holder.take('job')
  watch(first.take('job', 30_000))
  await stage.clock.advance(1_000)
  stage.store.always('want', unreachable)
  stage.store.always('tryInsert', unreachable)
  await stage.clock.advance(5_000)
  const late = watch(second.take('job', 1_000))
  await stage.clock.advance(1_000)
  expect(late.error).toBeInstanceOf(ContentionError)
})

test('"held" was said, then the store went: the wait still ends with "not mine"', async () => {
  const stage = await Stage.started({ ttlMs: 60_000 })
  const [holder, waiter] = await stage.workers('holder', 'waiter')
  await holder.take('job')
  const seen = watch(waiter.take('job', 3_000))
  await stage.clock.advance(1_000)
  stage.store.always('want', unreachable)
  stage.store.always('tryInsert', unreachable)
  await stage.clock.advance(2_000)
  expect(seen).toMatchObject({ state: 'resolved', value: undefined })
})

test('FR-28: a failing store is retried within the wait, with jittered and growing pauses', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  const asked: number[] = []
  const scene: Scene = (proceed) => {
    asked.push(Number(stage.clock.monotonicNanos() / 1_000_000n))
    return unreachable(proceed)
  }
  stage.store.always('tryInsert', scene)
  const seen = watch(worker.take('job', 30_000))
  await stage.clock.advance(20_000)
  const pauses = asked.slice(1).map((at, index) => at - (asked[index] ?? 0))
  expect(pauses.every((pause, index) => pause <= Math.min(2_000, 50 * 2 ** index) + 1)).toBe(true)
  expect(new Set(pauses).size).toBeGreaterThan(5)
  stage.store.always('tryInsert', undefined)
  await stage.clock.advance(2_000)
  expect(seen.state).toBe('resolved')
})

test('a store that says when to come back is left alone until then', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  const busy = new ContentionError('busy', { retryAfterMs: 1_500 })
  stage.store.next('tryInsert', () => Promise.reject(busy))
  const seen = watch(worker.take('job', 9_000))
  await stage.clock.advance(1_499)
  expect(stage.store.count('tryInsert')).toBe(1)
  await stage.clock.advance(1)
  expect(seen.state).toBe('resolved')
})

test('an election is waited for, and a grant whose answer was lost comes with the token it had', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  stage.store.next('tryInsert', () => Promise.reject(new NotLeaderError('an election')))
  stage.store.next('tryInsert', answerLost)
  const seen = watch(worker.take('job', 9_000))
  await stage.clock.advance(500)
  expect(granted(seen.value).fencingToken).toBe(1n)
})

test('a wait that ends after a lost answer asks once more: no grant is left that nobody knows', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  const busy = new ContentionError('busy', { retryAfterMs: 5_000 })
  stage.store.next('tryInsert', async (proceed) => {
    await proceed()
    throw busy
  })
  const seen = watch(worker.take('job', 1_000))
  await stage.clock.advance(1_000)
  expect(granted(seen.value).fencingToken).toBe(1n)
})

test('an error that is none of the contract’s rejects the one call, and the next one is served', async () => {
  const stage = await Stage.started()
  const [first, second] = await stage.workers('first', 'second')
  stage.store.next('tryInsert', () => Promise.reject(new Error('a bug in the store')))
  const one = watch(first.take('job', 9_000))
  const two = watch(second.take('job', 9_000))
  await stage.settle()
  expect(one.error).toEqual(new Error('a bug in the store'))
  expect(two.state).toBe('resolved')
})

test('a store that has only the eleven methods makes a working service', async () => {
  const stage = await Stage.started({
    without: [
      'waiting',
      'transfer',
      'sessions',
      'listing',
      'audit',
      'tokens',
      'health',
      'ttlBounds',
    ],
  })
  const [worker, other] = await stage.workers('worker', 'other')
  const lock = granted(await worker.take('job'))
  const next = watch(other.take('job', 9_000))
  await stage.settle()
  expect(await worker.locks.renew(lock)).toMatchObject({ fencingToken: lock.fencingToken })
  expect(await worker.locks.release(lock)).toBe(true)
  await stage.settle()
  expect(next.state).toBe('resolved')
  await stage.engine.checkHealth()
  expect(await stage.engine.revoke('job', 'operator', 'a test')).toMatchObject({
    kind: 'revoked',
    revocationId: expect.stringMatching(/^floor-\d+$/),
  })
  expect(await stage.engine.revoke('job', 'operator', 'a test')).toEqual({ kind: 'not-held' })
  await expect(stage.engine.revoke('job', 'operator', 'a test', 7n)).rejects.toThrow(
    /expectedToken/,
  )
  stage.store.always('read', unreachable)
  await expect(stage.engine.checkHealth()).rejects.toThrow(ContentionError)
})
