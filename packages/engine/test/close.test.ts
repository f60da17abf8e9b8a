import { ContentionError } from '@dlock/lock-api'
import { expect, test } from 'vitest'
import { LockEngine } from '../src/index.ts'
import { granted, Stage, watch } from './stage.ts'
import { Gate, unreachable } from './staged-store.ts'

test('close ends every wait, and leaves no timer, no subscription and no grant behind', async () => {
  const stage = await Stage.started()
  const [holder, ...crowd] = await stage.crowd(20)
  await holder?.take('job')
  const waits = crowd.map((worker) => watch(worker.take('job', 60_000)))
  const gate = new Gate()
  stage.store.next('tryInsert', gate.after)
  const [asking] = await stage.workers('asking')
  const inFlight = watch(asking.take('free', 60_000))
  await gate.reached
  const closing = watch(stage.engine.close())
  await stage.settle()
  expect(waits.every(({ error }) => error instanceof ContentionError)).toBe(true)
  expect(closing.state).toBe('pending')
  gate.open()
  await stage.engine.close()
  expect(inFlight.error).toBeInstanceOf(ContentionError)
  expect(await stage.memory.read('free')).toBeUndefined()
  expect(stage.clock.pendingTimers).toBe(0)
  expect(stage.store.subscriptions).toBe(0)
})

test('a closed engine grants nothing, and still lets go and prolongs', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  const lock = granted(await worker.take('job'))
  await stage.engine.close()
  await expect(worker.take('other')).rejects.toThrow(ContentionError)
  await expect(worker.take('other', 1_000)).rejects.toThrow(ContentionError)
  await expect(stage.engine.start()).rejects.toThrow(ContentionError)
  expect(await worker.locks.renew(lock)).toMatchObject({ fencingToken: lock.fencingToken })
  expect(await worker.locks.release(lock)).toBe(true)
  expect(await stage.engine.heartbeat(worker.sessionId, 1_000)).toBe(true)
})

test('close is bounded even when the store never answers', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  stage.store.always('tryInsert', () => new Promise(() => {}))
  watch(worker.take('job', 60_000))
  await stage.settle()
  const closing = watch(stage.engine.close())
  await stage.clock.advance(9_999)
  expect(closing.state).toBe('pending')
  await stage.clock.advance(1)
  expect(closing.state).toBe('resolved')
})

test('start is idempotent, and may be called again after it failed', async () => {
  const stage = new Stage()
  stage.store.next('subscribe', unreachable)
  await expect(stage.engine.start()).rejects.toThrow(ContentionError)
  await Promise.all([stage.engine.start(), stage.engine.start()])
  expect(stage.store.subscriptions).toBe(1)
  await stage.engine.close()
  expect(stage.store.subscriptions).toBe(0)
})

test('closing while it starts leaves no subscription', async () => {
  const stage = new Stage()
  const gate = new Gate()
  stage.store.next('subscribe', gate.before)
  const starting = stage.engine.start()
  await gate.reached
  const closing = stage.engine.close()
  gate.open()
  await Promise.all([starting, closing])
  expect(stage.store.subscriptions).toBe(0)
  expect(stage.clock.pendingTimers).toBe(0)
})

test('what was freed before the subscription stood is not waited for', async () => {
  const stage = new Stage({ engine: { fallbackPollMs: 60_000 } })
  const [holder, waiter] = await stage.workers('holder', 'waiter')
  const lock = granted(await holder.take('job'))
  const seen = watch(waiter.take('job', 9_000))
  await stage.settle()
  await stage.memory.deleteIfOwner('job', lock.fencingToken)
  await stage.settle()
  expect(seen.state).toBe('pending')
  await stage.engine.start()
  await stage.settle()
  expect(seen.state).toBe('resolved')
})

test.each([
  [{ safetyMargin: 1 }, /safetyMargin must be from 0 to below 1, got 1/],
  [{ safetyMargin: Number.NaN }, /safetyMargin/],
  [{ maxTtlMs: 0 }, /maxTtlMs must be a whole number from 1/],
  [{ maxWaitMs: 1.5 }, /maxWaitMs/],
  [{ maxWaiters: 0 }, /maxWaiters/],
  [{ fallbackPollMs: -1 }, /fallbackPollMs/],
  [{ reapEveryMs: Number.POSITIVE_INFINITY }, /reapEveryMs/],
])('a bad option is named: %o', (options, message) => {
  const { memory } = new Stage()
  expect(() => new LockEngine({ store: memory, ...options })).toThrow(message)
})

test('limits of the options hold for calls, and a bad argument is named', async () => {
  const stage = new Stage({ engine: { maxWaitMs: 1_000, maxTtlMs: 60_000 } })
  const [worker] = await stage.workers('worker')
  const { locks } = worker
  await expect(worker.take('job', 1_001)).rejects.toThrow(/maxWaitMs .* from 0 to 1000, got 1001/)
  await expect(locks.tryAcquire('job', 'worker', 60_001)).rejects.toThrow(/ttlMs .* to 60000/)
  await expect(locks.tryAcquire('', 'worker', 1)).rejects.toThrow(/key/)
  await expect(locks.tryAcquire('job', '', 1)).rejects.toThrow(/ownerId/)
  await expect(stage.engine.renewGrant(worker.sessionId, 'job', 0n, 1)).rejects.toThrow(/fencing/)
  expect(stage.engine.grantedTtlMs(1_234)).toBe(1_234)
  expect(stage.engine.backendId).toBe('memory')
})
