import { ContentionError } from '@dlock/lock-api'
import { afterEach, expect, test } from 'vitest'
import { granted, Stage, watch } from './stage.ts'
import { answerLost, Gate, unreachable } from './staged-store.ts'

const warnings: Error[] = []
const onWarning = (warning: Error): void => void warnings.push(warning)
process.on('warning', onWarning)
afterEach(() => {
  warnings.length = 0
})

test('an aborted wait rejects with the reason and leaves the queue at once', async () => {
  const stage = await Stage.started()
  const [holder, waiter] = await stage.workers('holder', 'waiter')
  await holder.take('job')
  const abort = new AbortController()
  const seen = watch(waiter.take('job', 5_000, abort.signal))
  await stage.settle()
  const reason = new Error('enough')
  abort.abort(reason)
  await stage.settle()
  expect(seen).toMatchObject({ state: 'rejected', error: reason })
  expect(stage.engine.gauges().waiters).toBe(0)
})

test('a signal that is aborted already asks nothing of the store', async () => {
  const stage = new Stage()
  const [worker] = await stage.workers('worker')
  await expect(worker.take('job', 5_000, AbortSignal.abort('no'))).rejects.toBe('no')
  expect(stage.store.count('tryInsert')).toBe(0)
})

test.each([0, 5_000])(
  'aborted while the grant is on its way: it is released before the call rejects (wait %i)',
  async (maxWaitMs) => {
    const stage = await Stage.started()
    const [worker] = await stage.workers('worker')
    const gate = new Gate()
    stage.store.next('tryInsert', gate.after)
    const abort = new AbortController()
    const seen = watch(worker.take('job', maxWaitMs, abort.signal))
    await gate.reached
    abort.abort(new Error('enough'))
    await stage.settle()
    expect(seen.state).toBe('pending')
    const release = new Gate()
    stage.store.next('deleteIfOwner', release.before)
    gate.open()
    await release.reached
    expect(seen.state).toBe('pending')
    release.open()
    await stage.settle()
    expect(seen).toMatchObject({ state: 'rejected', error: new Error('enough') })
    expect(await stage.memory.read('job')).toBeUndefined()
    expect(stage.engine.gauges()).toMatchObject({ held: 0, waiters: 0 })
    expect(stage.told('lock_granted')).toHaveLength(0)
  },
)

test('aborted after an attempt whose answer was lost: what it left is found and released', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  stage.store.next('tryInsert', answerLost)
  const abort = new AbortController()
  const seen = watch(worker.take('job', 5_000, abort.signal))
  await stage.settle()
  abort.abort(new Error('enough'))
  await stage.settle()
  expect(seen).toMatchObject({ state: 'rejected', error: new Error('enough') })
  expect(await stage.memory.read('job')).toBeUndefined()
})

test('aborted while the answer is being lost: so it is', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  const gate = new Gate()
  stage.store.next('tryInsert', async (proceed) => {
    await gate.after(proceed)
    return unreachable(proceed)
  })
  const abort = new AbortController()
  const seen = watch(worker.take('job', 5_000, abort.signal))
  await gate.reached
  abort.abort(new Error('enough'))
  gate.open()
  await stage.settle()
  expect(seen).toMatchObject({ state: 'rejected', error: new Error('enough') })
  expect(await stage.memory.read('job')).toBeUndefined()
  expect(stage.store.count('tryInsert')).toBe(2)
})

test('out of time while the answer is being lost: no further round trip, and no decision', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  const gate = new Gate()
  stage.store.next('tryInsert', async (proceed) => {
    await gate.after(proceed)
    return unreachable(proceed)
  })
  const seen = watch(worker.take('job', 500))
  await gate.reached
  await stage.clock.advance(800)
  gate.open()
  await stage.settle()
  expect(seen.error).toBeInstanceOf(ContentionError)
  expect(stage.store.count('tryInsert')).toBe(1)
})

test('the reason of an abort stands, even when the session turns out to be dead', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  stage.store.next('tryInsert', unreachable)
  const abort = new AbortController()
  const seen = watch(worker.take('job', 5_000, abort.signal))
  await stage.settle()
  stage.memory.loseSession(worker.sessionId)
  abort.abort(new Error('enough'))
  await stage.settle()
  expect(seen).toMatchObject({ state: 'rejected', error: new Error('enough') })
})

test('aborted after lost answers, with the store still away: the call rejects all the same', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  stage.store.always('tryInsert', unreachable)
  const abort = new AbortController()
  const seen = watch(worker.take('job', 5_000, abort.signal))
  await stage.settle()
  abort.abort(new Error('enough'))
  await stage.settle()
  expect(seen).toMatchObject({ state: 'rejected', error: new Error('enough') })
})

test('an aborted retry does not release the grant that its session is using', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  const lock = granted(await worker.take('job'))
  const gate = new Gate()
  stage.store.next('tryInsert', gate.after)
  const abort = new AbortController()
  const retry = watch(worker.take('job', 5_000, abort.signal))
  await gate.reached
  abort.abort()
  gate.open()
  await stage.settle()
  expect(retry.state).toBe('rejected')
  expect(await stage.memory.read('job')).toMatchObject({ fencingToken: lock.fencingToken })
})

test('a grant that arrives after the deadline of the wait is returned', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  const gate = new Gate()
  stage.store.next('tryInsert', gate.after)
  const seen = watch(worker.take('job', 500))
  await gate.reached
  await stage.clock.advance(800)
  gate.open()
  await stage.settle()
  expect(granted(seen.value).fencingToken).toBe(1n)
})

test('a refusal that arrives after the deadline of the wait ends it', async () => {
  const stage = await Stage.started()
  const [holder, worker] = await stage.workers('holder', 'worker')
  await holder.take('job')
  const gate = new Gate()
  stage.store.next('tryInsert', gate.after)
  const seen = watch(worker.take('job', 500))
  await gate.reached
  await stage.clock.advance(800)
  gate.open()
  await stage.settle()
  expect(seen).toMatchObject({ state: 'resolved', value: undefined })
  expect(stage.store.count('want')).toBe(0)
})

test('a grant that comes after its own deadline is released, and asked for again', async () => {
  const stage = await Stage.started({ ttlMs: 1_000 })
  const [worker] = await stage.workers('worker')
  const gate = new Gate()
  stage.store.next('tryInsert', gate.after)
  const seen = watch(worker.take('job', 5_000))
  await gate.reached
  await stage.clock.advance(700)
  gate.open()
  await stage.settle()
  expect(stage.store.count('deleteIfOwner')).toBe(1)
  await stage.clock.advance(100)
  expect(granted(seen.value).fencingToken).toBe(2n)
})

test('without a wait, a grant that comes after its own deadline is no decision', async () => {
  const stage = await Stage.started({ ttlMs: 1_000 })
  const [worker] = await stage.workers('worker')
  const gate = new Gate()
  stage.store.next('tryInsert', gate.after)
  const seen = watch(worker.take('job'))
  await gate.reached
  await stage.clock.advance(700)
  gate.open()
  await stage.settle()
  expect(seen.error).toBeInstanceOf(ContentionError)
  expect(await stage.memory.read('job')).toBeUndefined()
})

test('P-22: a hundred waits on one signal share one listener, and cause no warning', async () => {
  const stage = await Stage.started()
  const [holder, ...waiters] = await stage.crowd(101)
  await holder?.take('job')
  const abort = new AbortController()
  const listeners = countListeners(abort.signal)
  const waits = waiters.map((waiter) => watch(waiter.take('job', 9_000, abort.signal)))
  await stage.settle()
  expect(listeners()).toBe(1)
  abort.abort(new Error('enough'))
  await stage.settle()
  expect(waits.every(({ state }) => state === 'rejected')).toBe(true)
  expect(listeners()).toBe(0)
  await new Promise((resolve) => setImmediate(resolve))
  expect(warnings).toEqual([])
})

test('P-22: waits that end by themselves leave no listener on a signal that lives on', async () => {
  const stage = await Stage.started()
  const [holder, ...waiters] = await stage.crowd(20)
  const lock = granted(await holder?.take('job'))
  const abort = new AbortController()
  const listeners = countListeners(abort.signal)
  const late = waiters.slice(1).map((waiter) => watch(waiter.take('job', 1_000, abort.signal)))
  await stage.clock.advance(1_000)
  expect(late.every(({ state }) => state === 'resolved')).toBe(true)
  expect(listeners()).toBe(0)
  const served = waiters[0]?.take('job', 9_000, abort.signal)
  await stage.settle()
  expect(listeners()).toBe(1)
  await holder?.locks.release(lock)
  granted(await served)
  expect(listeners()).toBe(0)
})

function countListeners(signal: AbortSignal): () => number {
  const listeners = new Set<unknown>()
  const add = signal.addEventListener.bind(signal)
  const remove = signal.removeEventListener.bind(signal)
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners.add(args[1])
    add(...args)
  }
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners.delete(args[1])
    remove(...args)
  }
  return () => listeners.size
}
