import { ContentionError, SessionDeadError } from '@dlock/lock-api'
import { expect, test } from 'vitest'
import { granted, Stage, watch } from './stage.ts'
import { answerLost, Gate, unreachable } from './staged-store.ts'

test('a release hands the key to the head in one call to the store', async () => {
  const stage = await Stage.started()
  const [holder, waiter] = await stage.workers('holder', 'waiter')
  const lock = granted(await holder.take('job'))
  const next = waiter.take('job', 5_000)
  await stage.settle()
  stage.store.calls.length = 0
  expect(await holder.locks.release(lock)).toBe(true)
  expect(granted(await next).fencingToken).toBeGreaterThan(lock.fencingToken)
  await stage.settle()
  expect(stage.store.calls).toEqual(['transfer'])
  expect(stage.events.map(({ type }) => type).slice(-2)).toEqual(['lock_released', 'lock_granted'])
})

test('a release with nobody waiting only deletes', async () => {
  const stage = await Stage.started()
  const [holder] = await stage.workers('holder')
  const lock = granted(await holder.take('job'))
  expect(await holder.locks.release(lock)).toBe(true)
  expect(await holder.locks.release(lock)).toBe(false)
  expect(stage.store.count('transfer')).toBe(0)
  expect(stage.told('lock_released')).toHaveLength(1)
})

test('a whole queue is handed through without asking for the key again', async () => {
  const stage = await Stage.started()
  const crowd = await stage.crowd(50)
  const turns = crowd.map(async ({ take, locks }) =>
    locks.release(granted(await take('job', 9_000))),
  )
  await Promise.all(turns)
  expect(stage.store.count('transfer')).toBe(49)
  expect(stage.store.count('tryInsert')).toBe(1)
  expect(stage.store.count('want')).toBeLessThanOrEqual(1)
})

test('a queue that was served to its end leaves no timer', async () => {
  const stage = new Stage()
  const [holder, waiter] = await stage.workers('holder', 'waiter')
  const lock = granted(await holder.take('job'))
  const next = waiter.take('job', 5_000)
  await stage.settle()
  await holder.locks.release(lock)
  granted(await next)
  await stage.settle()
  expect(stage.clock.pendingTimers).toBe(0)
})

test('without transfer in the store, the head asks as soon as the release is done', async () => {
  const stage = await Stage.started({ without: ['transfer', 'waiting'] })
  const [holder, waiter] = await stage.workers('holder', 'waiter')
  const lock = granted(await holder.take('job'))
  const next = watch(waiter.take('job', 5_000))
  await stage.settle()
  await holder.locks.release(lock)
  await stage.settle()
  expect(next.state).toBe('resolved')
})

test('P-18: the head aborts while the key is being handed to it: the next one gets it', async () => {
  const stage = await Stage.started()
  const [holder, head, next] = await stage.workers('holder', 'head', 'next')
  const lock = granted(await holder.take('job'))
  const abort = new AbortController()
  const gone = watch(head.take('job', 5_000, abort.signal))
  const served = watch(next.take('job', 5_000))
  await stage.settle()
  const gate = new Gate()
  stage.store.next('transfer', gate.after)
  const releasing = holder.locks.release(lock)
  await gate.reached
  abort.abort(new Error('enough'))
  await stage.settle()
  expect(gone.state).toBe('pending')
  gate.open()
  expect(await releasing).toBe(true)
  await stage.settle()
  expect(gone).toMatchObject({ state: 'rejected', error: new Error('enough') })
  expect(granted(served.value).fencingToken).toBe(3n)
})

test('the head aborts while the key is being handed to it, and nobody else waits: it is free', async () => {
  const stage = await Stage.started()
  const [holder, head] = await stage.workers('holder', 'head')
  const lock = granted(await holder.take('job'))
  const abort = new AbortController()
  const gone = watch(head.take('job', 5_000, abort.signal))
  await stage.settle()
  const gate = new Gate()
  stage.store.next('transfer', gate.after)
  const releasing = holder.locks.release(lock)
  await gate.reached
  abort.abort()
  gate.open()
  await releasing
  await stage.settle()
  expect(gone.state).toBe('rejected')
  expect(await stage.memory.read('job')).toBeUndefined()
})

test('a grant that is on its way when the wait ends is returned all the same', async () => {
  const stage = await Stage.started()
  const [holder, head] = await stage.workers('holder', 'head')
  const lock = granted(await holder.take('job'))
  const seen = watch(head.take('job', 1_000))
  await stage.settle()
  const gate = new Gate()
  stage.store.next('transfer', gate.after)
  const releasing = holder.locks.release(lock)
  await gate.reached
  await stage.clock.advance(1_500)
  expect(seen.state).toBe('pending')
  gate.open()
  await releasing
  await stage.settle()
  expect(granted(seen.value).fencingToken).toBe(2n)
})

test('P-18: the head has crashed: its session is dead, and the next one is served at once', async () => {
  const stage = await Stage.started()
  const [holder, head, next] = await stage.workers('holder', 'head', 'next')
  const lock = granted(await holder.take('job'))
  const dead = watch(head.take('job', 5_000))
  const served = watch(next.take('job', 5_000))
  await stage.settle()
  stage.memory.loseSession(head.sessionId)
  expect(await holder.locks.release(lock)).toBe(true)
  await stage.settle()
  expect(dead.error).toBeInstanceOf(SessionDeadError)
  expect(served.state).toBe('resolved')
})

test('P-18: the head times out: the next one is served when the key is released', async () => {
  const stage = await Stage.started()
  const [holder, head, next] = await stage.workers('holder', 'head', 'next')
  const lock = granted(await holder.take('job'))
  const late = watch(head.take('job', 1_000))
  const served = watch(next.take('job', 5_000))
  await stage.clock.advance(1_500)
  expect(late).toMatchObject({ state: 'resolved', value: undefined })
  await holder.locks.release(lock)
  await stage.settle()
  expect(served.state).toBe('resolved')
})

test('a hand-off whose grant is gone already leaves the head waiting, and asking', async () => {
  const stage = await Stage.started({ mute: true })
  const [holder, head] = await stage.workers('holder', 'head')
  const lock = granted(await holder.take('job'))
  const seen = watch(head.take('job', 5_000))
  await stage.settle()
  await stage.memory.deleteIfOwner('job', lock.fencingToken)
  expect(await holder.locks.release(lock)).toBe(false)
  expect(stage.store.count('transfer')).toBe(1)
  await stage.settle()
  expect(granted(seen.value).fencingToken).toBe(2n)
})

test('a hand-off that the store cannot do fails the release and keeps the head in its place', async () => {
  const stage = await Stage.started()
  const [holder, head] = await stage.workers('holder', 'head')
  const lock = granted(await holder.take('job'))
  const seen = watch(head.take('job', 9_000))
  await stage.settle()
  stage.store.next('transfer', unreachable)
  await expect(holder.locks.release(lock)).rejects.toThrow(ContentionError)
  await stage.clock.advance(100)
  expect(seen.state).toBe('pending')
  expect(await holder.locks.release(lock)).toBe(true)
  await stage.clock.advance(100)
  expect(seen.state).toBe('resolved')
})

test('a hand-off whose answer is lost still reaches the head, with the token it was given', async () => {
  const stage = await Stage.started()
  const [holder, head] = await stage.workers('holder', 'head')
  const lock = granted(await holder.take('job'))
  const seen = watch(head.take('job', 9_000))
  await stage.settle()
  stage.store.next('transfer', answerLost)
  await expect(holder.locks.release(lock)).rejects.toThrow(ContentionError)
  await stage.clock.advance(100)
  expect(granted(seen.value).fencingToken).toBe(2n)
})

test('a release while the head is asking for itself deletes, and the head asks again', async () => {
  const stage = await Stage.started()
  const [holder, head] = await stage.workers('holder', 'head')
  const lock = granted(await holder.take('job'))
  const gate = new Gate()
  stage.store.next('tryInsert', gate.after)
  const seen = watch(head.take('job', 9_000))
  await gate.reached
  expect(await holder.locks.release(lock)).toBe(true)
  expect(stage.store.count('transfer')).toBe(0)
  gate.open()
  await stage.settle()
  expect(seen.state).toBe('resolved')
})

test('a busy process cannot keep a key among its own: others get it within about a second', async () => {
  const here = await Stage.started()
  const there = await Stage.started({ clock: here.clock, memory: here.memory })
  const busy = await here.crowd(3)
  const [outsider] = await there.workers('outsider')
  let stop = false
  const loops = busy.map(async ({ take, locks }) => {
    while (!stop) {
      const lock = await take('job', 60_000)
      if (lock === undefined) continue
      await new Promise<void>((resolve) => here.clock.setTimer(20, resolve))
      await locks.release(lock)
    }
  })
  await here.clock.advance(100)
  const seen = watch(outsider.take('job', 60_000))
  await here.clock.advance(1_200)
  expect(seen.state).toBe('resolved')
  expect(here.store.count('transfer')).toBeGreaterThan(30)
  stop = true
  await outsider.locks.release(granted(seen.value))
  await here.clock.advance(1_000)
  await Promise.all(loops)
})
