import { ContentionError } from '@dlock/lock-api'
import { expect, test } from 'vitest'
import { granted, Stage, TTL_MS } from './stage.ts'
import { Gate, unreachable } from './staged-store.ts'

const MARGIN = 0.3

test('FR-11: the deadline counts from when the request was sent, less the safety margin', async () => {
  const stage = new Stage()
  const [worker] = await stage.workers('worker')
  const gate = new Gate()
  stage.store.next('tryInsert', gate.after)
  const sentNanos = stage.clock.monotonicNanos()
  const asking = worker.take('job')
  await gate.reached
  await stage.clock.advance(1_000)
  gate.open()
  const lock = granted(await asking)
  expect(lock.clientDeadlineNanos - sentNanos).toBe(BigInt(TTL_MS * (1 - MARGIN) * 1e6))
})

test('FR-11: so it does for a renewal, and for a grant that was handed on', async () => {
  const stage = await Stage.started({ engine: { safetyMargin: 0.5 } })
  const [holder, waiter] = await stage.workers('holder', 'waiter')
  const lock = granted(await holder.take('job'))
  const next = waiter.take('job', 5_000)
  await stage.clock.advance(2_000)
  const renewed = granted(await holder.locks.renew(lock))
  expect(renewed.fencingToken).toBe(lock.fencingToken)
  expect(renewed.clientDeadlineNanos - lock.clientDeadlineNanos).toBe(2_000_000_000n)
  const sentNanos = stage.clock.monotonicNanos()
  await holder.locks.release(renewed)
  expect(granted(await next).clientDeadlineNanos - sentNanos).toBe(BigInt(TTL_MS * 0.5 * 1e6))
})

test('a renewal asks for the lease it was last granted or renewed with', async () => {
  const stage = new Stage()
  const [worker] = await stage.workers('worker')
  const lock = granted(await worker.locks.tryAcquire('job', 'worker', 4_000))
  const left = async (): Promise<number> => {
    const info = await stage.engine.inspect('job')
    return (info?.expiresAt.getTime() ?? 0) - stage.clock.now().getTime()
  }
  await stage.clock.advance(3_000)
  await worker.locks.renew(lock)
  expect(await left()).toBe(4_000)
  await stage.engine.renewGrant(worker.sessionId, 'job', lock.fencingToken, 9_000)
  await stage.clock.advance(5_000)
  await worker.locks.renew(lock)
  expect(await left()).toBe(9_000)
})

test('a renewal of a grant that this process does not know asks for 30 s', async () => {
  const there = new Stage()
  const here = new Stage({ clock: there.clock, memory: there.memory })
  const [worker] = await there.workers('worker')
  const lock = granted(await worker.take('job'))
  await here.workerOf('worker', worker.sessionId).locks.renew(lock)
  const info = await here.engine.inspect('job')
  expect((info?.expiresAt.getTime() ?? 0) - here.clock.now().getTime()).toBe(30_000)
  expect(here.engine.gauges().held).toBe(1)
})

test('lost is lost, and transient is not lost', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  const lock = granted(await worker.take('job'))
  stage.store.next('extend', unreachable)
  await expect(worker.locks.renew(lock)).rejects.toThrow(ContentionError)
  expect(granted(await worker.locks.renew(lock)).fencingToken).toBe(lock.fencingToken)
  await stage.clock.advance(TTL_MS)
  expect(await worker.locks.renew(lock)).toBeUndefined()
  expect(stage.told('lease_expired')).toMatchObject([{ key: 'job', fencingToken: 1n }])
  expect(stage.engine.gauges().held).toBe(0)
})

test('P-20: a renewal in flight while the lock is released cannot bring it back', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  const lock = granted(await worker.take('job'))
  const gate = new Gate()
  stage.store.next('extend', gate.after)
  const renewing = worker.locks.renew(lock)
  await gate.reached
  expect(await worker.locks.release(lock)).toBe(true)
  gate.open()
  expect(await renewing).toBeUndefined()
  expect(await stage.memory.read('job')).toBeUndefined()
  expect(stage.engine.gauges().held).toBe(0)
})

test.each(['release', 'closeSession'] as const)(
  'P-20: nor can it when the grant was made elsewhere (%s)',
  async (end) => {
    const there = new Stage()
    const here = new Stage({ clock: there.clock, memory: there.memory })
    const [worker] = await there.workers('worker')
    const lock = granted(await worker.take('job'))
    const moved = here.workerOf('worker', worker.sessionId)
    const gate = new Gate()
    here.store.next('extend', gate.after)
    const renewing = moved.locks.renew(lock)
    await gate.reached
    if (end === 'release') await moved.locks.release(lock)
    else await here.engine.closeSession(worker.sessionId)
    gate.open()
    expect(await renewing).toBeUndefined()
    expect(here.engine.gauges().held).toBe(0)
  },
)

test('P-16: a late renewal and release of an expired grant leave its successor unharmed', async () => {
  const stage = await Stage.started()
  const [a, b] = await stage.workers('a', 'b')
  const old = granted(await a.take('job'))
  await stage.clock.advance(TTL_MS)
  const lock = granted(await b.take('job'))
  expect(await a.locks.renew(old)).toBeUndefined()
  expect(await a.locks.release(old)).toBe(false)
  expect(granted(await b.locks.renew(lock)).fencingToken).toBe(lock.fencingToken)
  expect(stage.told('lease_expired')).toMatchObject([{ ownerId: 'a' }])
  expect(stage.told('lock_released')).toHaveLength(0)
})

test('a session can neither renew nor release by token what this process knows is another’s', async () => {
  const stage = await Stage.started()
  const [worker, thief] = await stage.workers('worker', 'thief')
  const lock = granted(await worker.take('job'))
  const { engine } = stage
  const { fencingToken } = lock
  expect(await engine.renewGrant(thief.sessionId, 'job', fencingToken, 1_000)).toBeUndefined()
  expect(await engine.releaseGrant(thief.sessionId, 'job', fencingToken)).toBe(false)
  await expect(thief.locks.release(lock)).rejects.toThrow(/handle must be of the session/)
  await expect(thief.locks.renew({ key: 'job' } as never)).rejects.toThrow(TypeError)
  expect(await stage.memory.read('job')).toMatchObject({ fencingToken })
  expect(await engine.releaseGrant(worker.sessionId, 'job', fencingToken)).toBe(true)
})

test('FR-05: a session cannot release the grant of another owner that another process made', async () => {
  const here = await Stage.started()
  const there = await Stage.started({ clock: here.clock, memory: here.memory })
  const worker = await here.worker('worker')
  const [thief, sibling] = await there.workers('thief', 'worker')
  const { fencingToken } = granted(await worker.take('job'))
  const release = (sessionId: string) => there.engine.releaseGrant(sessionId, 'job', fencingToken)
  expect(await release(thief.sessionId)).toBe(false)
  expect(await release('never opened')).toBe(false)
  expect(await here.memory.read('job')).toMatchObject({ fencingToken })
  expect(await release(sibling.sessionId)).toBe(true)
})

test('FR-05: without a session, (key, token) alone is the proof', async () => {
  const stage = await Stage.started()
  const [worker, waiter] = await stage.workers('worker', 'waiter')
  const lock = granted(await worker.take('job'))
  const next = waiter.take('job', 5_000)
  await stage.settle()
  expect(await stage.engine.releaseGrant(undefined, 'job', lock.fencingToken)).toBe(true)
  expect(granted(await next).fencingToken).toBe(2n)
  expect(stage.store.count('transfer')).toBe(1)
})
