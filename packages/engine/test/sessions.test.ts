import { SessionDeadError } from '@dlock/lock-api'
import { expect, test } from 'vitest'
import { granted, Stage, watch } from './stage.ts'
import { Gate, unreachable } from './staged-store.ts'

test('an owner that is not the session’s is refused, and the message names the field', async () => {
  const stage = new Stage()
  const [worker] = await stage.workers('worker')
  const attempt = worker.locks.acquire('job', 'somebody else', 1_000, 0)
  await expect(attempt).rejects.toThrow(RangeError)
  await expect(attempt).rejects.toThrow(/ownerId must be the session's owner/)
  expect(stage.store.count('tryInsert')).toBe(0)
})

test('a session opened by another process is asked about once, and its owner is then known', async () => {
  const there = new Stage()
  const here = new Stage({ clock: there.clock, memory: there.memory })
  const [worker] = await there.workers('worker')
  const same = here.workerOf('worker', worker.sessionId)
  for (const key of ['a', 'b', 'c']) granted(await same.take(key))
  expect(here.store.count('describeSession')).toBe(1)
  await expect(here.workerOf('other', worker.sessionId).take('d')).rejects.toThrow(RangeError)
})

test.each(['unknown', 'expired'] as const)('a session that is %s is refused', async (state) => {
  const stage = new Stage()
  const worker = await stage.worker('worker', 1_000)
  await stage.clock.advance(state === 'expired' ? 1_000 : 0)
  if (state === 'unknown') stage.memory.loseSession(worker.sessionId)
  const attempt = worker.take('job')
  await expect(attempt).rejects.toThrow(SessionDeadError)
  await expect(attempt).rejects.toMatchObject({ state })
  const fresh = new Stage({ clock: stage.clock, memory: stage.memory })
  await expect(fresh.workerOf('worker', worker.sessionId).take('job')).rejects.toMatchObject({
    state,
  })
})

test('a store that cannot describe sessions still refuses the dead ones', async () => {
  const stage = new Stage({ without: ['sessions'] })
  const worker = await stage.worker('worker', 1_000)
  await stage.clock.advance(1_000)
  await expect(worker.take('job')).rejects.toThrow(SessionDeadError)
  const fresh = new Stage({
    clock: stage.clock,
    memory: stage.memory,
    without: ['sessions'],
  })
  await expect(fresh.workerOf('w', worker.sessionId).take('job')).rejects.toThrow(SessionDeadError)
})

test('decision 3: a session that asks again for its own live grant gets the same token', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  const lock = granted(await worker.take('job'))
  const again = granted(await worker.take('job'))
  expect(again.fencingToken).toBe(lock.fencingToken)
  expect(stage.told('lock_granted')).toHaveLength(1)
})

test.each([0, 5_000])(
  'decision 3: so it does while others wait, and is not put behind them (wait %i)',
  async (maxWaitMs) => {
    const stage = await Stage.started()
    const [worker, other] = await stage.workers('worker', 'other')
    const lock = granted(await worker.take('job'))
    watch(other.take('job', 9_000))
    await stage.settle()
    expect(granted(await worker.take('job', maxWaitMs)).fencingToken).toBe(lock.fencingToken)
  },
)

test('decision 3: so it does when its grant was made by another process', async () => {
  const there = await Stage.started()
  const here = await Stage.started({ clock: there.clock, memory: there.memory })
  const [worker] = await there.workers('worker')
  const [other] = await here.workers('other')
  const lock = granted(await worker.take('job'))
  watch(other.take('job', 9_000))
  await here.settle()
  const moved = here.workerOf('worker', worker.sessionId)
  expect(granted(await moved.take('job', 5_000)).fencingToken).toBe(lock.fencingToken)
})

// Found by simulation: docs/findings/simulation.md.
test.each([0, 5_000])(
  'decision 3: so it does when another process made the grant, though it was opened here (wait %i)',
  async (maxWaitMs) => {
    const there = await Stage.started()
    const here = await Stage.started({ clock: there.clock, memory: there.memory })
    const [worker, other] = await here.workers('worker', 'other')
    const moved = there.workerOf('worker', worker.sessionId)
    const lock = granted(await moved.take('job'))
    watch(other.take('job', 9_000))
    await here.settle()
    const retry = watch(worker.take('job', maxWaitMs))
    await here.settle()
    await here.clock.advance(maxWaitMs)
    expect(granted(retry.value).fencingToken).toBe(lock.fencingToken)
  },
)

test('a store that cannot say what a session holds just now is no reason to fail', async () => {
  const there = await Stage.started()
  const here = await Stage.started({ clock: there.clock, memory: there.memory })
  const [worker] = await there.workers('worker')
  const [other] = await here.workers('other')
  const lock = granted(await other.take('job'))
  watch(other.take('job', 1))
  watch((await here.worker('third')).take('job', 9_000))
  await here.settle()
  here.store.next('locksOf', unreachable)
  const moved = watch(here.workerOf('worker', worker.sessionId).take('job', 9_000))
  await here.settle()
  expect(moved.state).toBe('pending')
  await other.locks.release(lock)
})

test('decision 3: two calls of one session in the queue both get the grant that one is handed', async () => {
  const stage = await Stage.started()
  const [holder, other, worker] = await stage.workers('holder', 'other', 'worker')
  const lock = granted(await holder.take('job'))
  const first = watch(worker.take('job', 9_000))
  const between = watch(other.take('job', 9_000))
  const retry = watch(worker.take('job', 9_000))
  await stage.settle()
  await holder.locks.release(lock)
  await stage.settle()
  expect(granted(retry.value).fencingToken).toBe(granted(first.value).fencingToken)
  expect(between.state).toBe('pending')
})

test('P-01: a waiter whose own session dies is refused within about one session TTL', async () => {
  const stage = await Stage.started({ ttlMs: 60_000 })
  const [holder, head] = await stage.workers('holder', 'head')
  const doomed = await stage.worker('doomed', 5_000)
  await holder.locks.acquire('job', 'holder', 60_000, 0)
  watch(head.take('job', 50_000))
  await stage.settle()
  const seen = watch(doomed.take('job', 50_000))
  await stage.clock.advance(4_999)
  expect(seen.state).toBe('pending')
  await stage.clock.advance(100)
  expect(seen.error).toBeInstanceOf(SessionDeadError)
  expect(stage.engine.gauges().waiters).toBe(1)
})

test('P-01: so it is when its session vanished behind the store’s back', async () => {
  const stage = await Stage.started()
  const [holder, head] = await stage.workers('holder', 'head')
  const doomed = await stage.worker('doomed', 5_000)
  await holder.locks.acquire('job', 'holder', 60_000, 0)
  watch(head.take('job', 50_000))
  await stage.settle()
  const seen = watch(doomed.take('job', 50_000))
  await stage.clock.advance(1_000)
  stage.memory.loseSession(doomed.sessionId)
  await stage.clock.advance(4_100)
  expect(seen.error).toBeInstanceOf(SessionDeadError)
})

test('a waiter whose session is kept alive, here or elsewhere, goes on waiting', async () => {
  const here = await Stage.started()
  const there = await Stage.started({ clock: here.clock, memory: here.memory })
  const [holder] = await here.workers('holder')
  const local = await here.worker('local', 5_000)
  const remote = await here.worker('remote', 5_000)
  await holder.locks.acquire('job', 'holder', 60_000, 0)
  const waits = [watch(local.take('job', 30_000)), watch(remote.take('job', 30_000))]
  const asked = here.store.count('describeSession')
  for (let beat = 0; beat < 5; beat += 1) {
    await here.clock.advance(4_000)
    await here.engine.heartbeat(local.sessionId, 5_000)
    await there.engine.heartbeat(remote.sessionId, 5_000)
  }
  expect(waits.map(({ state }) => state)).toEqual(['pending', 'pending'])
  // One question per TTL for the session whose heartbeats this process does not see.
  expect(here.store.count('describeSession') - asked).toBeLessThan(12)
})

test('a hundred waits of one session ask about it once', async () => {
  const stage = await Stage.started()
  const [holder] = await stage.workers('holder')
  const doomed = await stage.worker('doomed', 5_000)
  const keys = Array.from({ length: 100 }, (_, index) => `job-${index}`)
  for (const key of keys) await holder.locks.acquire(key, 'holder', 60_000, 0)
  const waits = keys.map((key) => watch(doomed.take(key, 30_000)))
  await stage.clock.advance(5_100)
  expect(waits.every(({ error }) => error instanceof SessionDeadError)).toBe(true)
  expect(stage.store.count('describeSession')).toBe(1)
  await stage.engine.close()
  expect(stage.clock.pendingTimers).toBe(0)
})

test('no answer about a session is no verdict on it', async () => {
  const stage = await Stage.started({ engine: { reapEveryMs: 3_600_000 } })
  const [holder] = await stage.workers('holder')
  const doomed = await stage.worker('doomed', 5_000)
  await holder.locks.acquire('job', 'holder', 60_000, 0)
  const seen = watch(doomed.take('job', 30_000))
  await stage.settle()
  stage.store.always('describeSession', unreachable)
  await stage.clock.advance(8_000)
  expect(seen.state).toBe('pending')
  stage.store.always('describeSession', undefined)
  await stage.clock.advance(1_000)
  expect(seen.error).toBeInstanceOf(SessionDeadError)
})

test('closing a session ends its waits and frees its keys for those who wait', async () => {
  const stage = await Stage.started()
  const [leaver, waiter] = await stage.workers('leaver', 'waiter')
  await leaver.take('held')
  const served = watch(waiter.take('held', 9_000))
  await waiter.take('wanted')
  const refused = watch(leaver.take('wanted', 9_000))
  await stage.settle()
  expect(await stage.engine.closeSession(leaver.sessionId)).toBe(1)
  await stage.settle()
  expect(refused.error).toBeInstanceOf(SessionDeadError)
  expect(served.state).toBe('resolved')
  expect(stage.told('session_closed')).toMatchObject([{ ownerId: 'leaver' }])
  expect(stage.told('lock_released')).toMatchObject([{ key: 'held', ownerId: 'leaver' }])
})

test('a heartbeat that is told "dead" ends the session’s waits', async () => {
  const stage = await Stage.started()
  const [holder, doomed] = await stage.workers('holder', 'doomed')
  await holder.take('job')
  const seen = watch(doomed.take('job', 9_000))
  await stage.settle()
  stage.memory.loseSession(doomed.sessionId)
  expect(await stage.engine.heartbeat(doomed.sessionId, 60_000)).toBe(false)
  await stage.settle()
  expect(seen.error).toBeInstanceOf(SessionDeadError)
  expect(stage.told('session_expired')).toMatchObject([{ ownerId: 'doomed' }])
})

test('a late answer to a heartbeat does not bring a closed session back into the book', async () => {
  const stage = new Stage()
  const [worker] = await stage.workers('worker')
  const gate = new Gate()
  stage.store.next('heartbeat', gate.after)
  const beat = stage.engine.heartbeat(worker.sessionId, 60_000)
  await gate.reached
  await stage.engine.closeSession(worker.sessionId)
  gate.open()
  expect(await beat).toBe(true)
  expect(stage.engine.gauges().sessions).toBe(0)
})

test('a session is described from the book while that is fresh, else by the store', async () => {
  const stage = new Stage()
  const worker = await stage.worker('worker', 5_000)
  await stage.clock.advance(2_000)
  expect(await stage.engine.describeSession(worker.sessionId)).toEqual({
    state: 'live',
    ownerId: 'worker',
    remainingMs: 3_000,
  })
  expect(stage.store.count('describeSession')).toBe(0)
  await stage.clock.advance(3_000)
  expect(await stage.engine.describeSession(worker.sessionId)).toEqual({ state: 'expired' })
})

test('locks of a session, and bad arguments, go by the contract', async () => {
  const stage = new Stage({ engine: { maxTtlMs: 10_000 } })
  const [worker] = await stage.workers('worker').catch(() => [undefined])
  expect(worker).toBeUndefined()
  const { engine } = stage
  const sessionId = await engine.openSession('worker', 10_000)
  await engine.forSession(sessionId).tryAcquire('job', 'worker', 1_000)
  expect(await engine.locksOf(sessionId)).toEqual(new Set(['job']))
  await expect(engine.openSession('worker', 10_001)).rejects.toThrow(/ttlMs .* from 1 to 10000/)
  await expect(engine.openSession(' ', 1_000)).rejects.toThrow(/ownerId/)
  await expect(engine.heartbeat(sessionId, 0)).rejects.toThrow(/ttlMs/)
  await expect(engine.closeSession('')).rejects.toThrow(/sessionId/)
  expect(() => engine.forSession('')).toThrow(/sessionId/)
})
