import { ContentionError, SessionDeadError } from '@dlock/lock-api'
import { expect, test } from 'vitest'
import { granted, Stage, watch } from './stage.ts'
import { Gate, unreachable } from './staged-store.ts'

test('a free key is granted in one round trip, without a timer', async () => {
  const stage = new Stage()
  const [worker] = await stage.workers('worker')
  expect(granted(await worker.take('job', 5_000)).fencingToken).toBe(1n)
  expect(stage.store.calls).toEqual(['openSession', 'tryInsert'])
  expect(stage.clock.pendingTimers).toBe(0)
})

test('waiting calls are served first in, first out, with increasing tokens', async () => {
  const stage = await Stage.started()
  const crowd = await stage.crowd(20)
  const served: string[] = []
  const tokens: bigint[] = []
  const turns = crowd.map(async (worker) => {
    const lock = granted(await worker.take('job', 60_000))
    served.push(worker.name)
    tokens.push(lock.fencingToken)
    await worker.locks.release(lock)
  })
  await Promise.all(turns)
  expect(served).toEqual(crowd.map(({ name }) => name))
  expect(tokens).toEqual(tokens.toSorted((a, b) => (a < b ? -1 : 1)))
  expect(new Set(tokens).size).toBe(20)
})

test('a wait that comes to nothing ends with "not mine" at its deadline, not before', async () => {
  const stage = await Stage.started()
  const [holder, waiter] = await stage.workers('holder', 'waiter')
  await holder.take('job')
  const seen = watch(waiter.take('job', 3_000))
  await stage.clock.advance(2_999)
  expect(seen.state).toBe('pending')
  await stage.clock.advance(1)
  expect(seen).toMatchObject({ state: 'resolved', value: undefined })
  expect(stage.engine.gauges().waiters).toBe(0)
  expect(stage.told('lock_contended')).toHaveLength(1)
})

test('a wait that ends before the store’s first word gets that word', async () => {
  const stage = await Stage.started()
  const [first, brief, down] = await stage.workers('first', 'brief', 'down')
  const gate = new Gate()
  stage.store.next('tryInsert', gate.after)
  const asking = first.take('job', 5_000)
  const seen = watch(brief.take('job', 1))
  await stage.clock.advance(50)
  expect(seen.state).toBe('pending')
  gate.open()
  granted(await asking)
  await stage.settle()
  expect(seen).toMatchObject({ state: 'resolved', value: undefined })
  const failing = new Gate()
  stage.store.next('tryInsert', async (proceed) => {
    await failing.after(proceed)
    return unreachable(proceed)
  })
  watch(first.take('other', 5_000))
  const error = watch(down.take('other', 1))
  await stage.clock.advance(50)
  failing.open()
  await stage.settle()
  expect(error.error).toBeInstanceOf(ContentionError)
})

test('a wait that ended before any word, and became the head, gets what is asked for it', async () => {
  const stage = await Stage.started()
  const [dead, brief] = await stage.workers('dead', 'brief')
  const gate = new Gate()
  stage.store.next('tryInsert', gate.before)
  const first = watch(dead.take('job', 5_000))
  const second = watch(brief.take('job', 1))
  await stage.clock.advance(50)
  stage.memory.loseSession(dead.sessionId)
  gate.open()
  await stage.settle()
  expect(first.error).toBeInstanceOf(SessionDeadError)
  const lock = granted(second.value)
  expect(await stage.memory.read('job')).toMatchObject({ fencingToken: lock.fencingToken })
})

test('only the head of a queue talks to the store, and does not ask for what it knows is held', async () => {
  const stage = await Stage.started({ ttlMs: 60_000 })
  const [holder, ...waiters] = await stage.crowd(50)
  await holder?.take('job')
  const asked = stage.store.count('tryInsert')
  for (const waiter of waiters) watch(waiter.take('job', 40_000))
  await stage.clock.advance(30_000)
  expect(stage.store.count('tryInsert')).toBe(asked + 1)
  // The look that guards against a lost announcement: jittered, one or two a second.
  expect(stage.store.count('want')).toBeLessThanOrEqual(61)
  expect(stage.engine.gauges().waiters).toBe(49)
  expect(await stage.engine.inspect('job')).toMatchObject({ waiterCount: 49 })
})

test('a release by another process reaches the head at once', async () => {
  const here = await Stage.started()
  const there = await Stage.started({ clock: here.clock, memory: here.memory })
  const [holder] = await there.workers('holder')
  const [waiter] = await here.workers('waiter')
  const lock = granted(await holder.take('job'))
  const seen = watch(waiter.take('job', 5_000))
  await here.settle()
  await holder.locks.release(lock)
  await here.settle()
  expect(seen.state).toBe('resolved')
  expect(granted(seen.value).fencingToken).toBeGreaterThan(lock.fencingToken)
})

test.each(['tryInsert', 'want'] as const)(
  'a release elsewhere while the answer of %s is on its way is not missed',
  async (verb) => {
    const here = await Stage.started()
    const there = await Stage.started({ clock: here.clock, memory: here.memory })
    const [holder] = await there.workers('holder')
    const [waiter] = await here.workers('waiter')
    const lock = granted(await holder.take('job'))
    const gate = new Gate()
    here.store.next(verb, gate.after)
    const seen = watch(waiter.take('job', 5_000))
    await gate.reached
    await holder.locks.release(lock)
    gate.open()
    await here.settle()
    expect(granted(seen.value).fencingToken).toBeGreaterThan(lock.fencingToken)
  },
)

test('a release elsewhere before the grant was marked as wanted is not missed', async () => {
  const here = await Stage.started()
  const there = await Stage.started({ clock: here.clock, memory: here.memory })
  const [holder] = await there.workers('holder')
  const [waiter] = await here.workers('waiter')
  const lock = granted(await holder.take('job'))
  const gate = new Gate()
  here.store.next('want', gate.before)
  const seen = watch(waiter.take('job', 5_000))
  await gate.reached
  await holder.locks.release(lock)
  gate.open()
  await here.settle()
  expect(granted(seen.value).fencingToken).toBeGreaterThan(lock.fencingToken)
})

test('the end of a lease wakes the head when it is due, whoever holds it', async () => {
  const stage = await Stage.started({ ttlMs: 700 })
  const [holder, waiter] = await stage.workers('holder', 'waiter')
  await holder.take('job')
  const seen = watch(waiter.take('job', 5_000))
  await stage.clock.advance(699)
  expect(seen.state).toBe('pending')
  await stage.clock.advance(6)
  expect(seen.state).toBe('resolved')
})

test('the end of a lease that was handed on here wakes the head when it is due', async () => {
  const stage = await Stage.started({ ttlMs: 60_000 })
  const [holder, brief, waiter] = await stage.workers('holder', 'brief', 'waiter')
  const lock = granted(await holder.take('job'))
  const handed = brief.locks.acquire('job', 'brief', 300, 9_000)
  const seen = watch(waiter.take('job', 9_000))
  await stage.settle()
  await holder.locks.release(lock)
  await handed
  await stage.clock.advance(299)
  expect(seen.state).toBe('pending')
  await stage.clock.advance(6)
  expect(seen.state).toBe('resolved')
})

test('a session that dies with its grant frees the key when it is due, with no sweep', async () => {
  const stage = await Stage.started({ engine: { reapEveryMs: 3_600_000 } })
  const holder = await stage.worker('holder', 1_500)
  const waiter = await stage.worker('waiter')
  await holder.take('job')
  const seen = watch(waiter.take('job', 9_000))
  await stage.clock.advance(1_510)
  expect(seen.state).toBe('resolved')
})

test('a store that is late by nature is not asked before it can be done', async () => {
  const stage = await Stage.started({
    ttlMs: 400,
    maxLatenessMs: 500,
    engine: { fallbackPollMs: 60_000 },
  })
  const [holder, waiter] = await stage.workers('holder', 'waiter')
  await holder.take('job')
  watch(waiter.take('job', 9_000))
  await stage.clock.advance(899)
  expect(stage.store.count('want')).toBe(1)
})

test('a lost announcement costs at most the fallback poll', async () => {
  const here = await Stage.started({ mute: true, ttlMs: 60_000 })
  const there = await Stage.started({ clock: here.clock, memory: here.memory })
  const [holder] = await there.workers('holder')
  const [waiter] = await here.workers('waiter')
  const lock = granted(await holder.locks.acquire('job', 'holder', 60_000, 0))
  const seen = watch(waiter.take('job', 30_000))
  await here.clock.advance(10_123)
  await holder.locks.release(lock)
  await here.settle()
  expect(seen.state).toBe('pending')
  await here.clock.advance(1_000)
  expect(seen.state).toBe('resolved')
})

test('a gap in the announcements makes every head ask', async () => {
  const here = await Stage.started({ mute: true, engine: { fallbackPollMs: 60_000 } })
  const there = await Stage.started({ clock: here.clock, memory: here.memory })
  const [holder] = await there.workers('holder')
  const [waiter] = await here.workers('waiter')
  const keys = ['a', 'b', 'c']
  const locks = await Promise.all(keys.map((key) => holder.take(key)))
  const waits = keys.map((key) => watch(waiter.take(key, 30_000)))
  await here.settle()
  for (const lock of locks) await holder.locks.release(granted(lock))
  await here.settle()
  expect(waits.map(({ state }) => state)).toEqual(['pending', 'pending', 'pending'])
  here.store.gap()
  await here.settle()
  expect(waits.map(({ state }) => state)).toEqual(['resolved', 'resolved', 'resolved'])
})

test('a store that announces nothing is polled, and still serves in order', async () => {
  const here = await Stage.started({ without: ['waiting', 'transfer', 'sessions', 'tokens'] })
  const there = await Stage.started({ clock: here.clock, memory: here.memory })
  const [holder] = await there.workers('holder')
  const [first, second] = await here.workers('first', 'second')
  const lock = granted(await holder.take('job'))
  const one = watch(first.take('job', 9_000))
  const two = watch(second.take('job', 9_000))
  await here.settle()
  await holder.locks.release(lock)
  await here.clock.advance(1_000)
  expect([one.state, two.state]).toEqual(['resolved', 'pending'])
  await first.locks.release(granted(one.value))
  await here.settle()
  expect(two.state).toBe('resolved')
})

test('a newcomer does not overtake those who wait, even when the key has just become free', async () => {
  const stage = await Stage.started()
  const [holder, waiter, newcomer] = await stage.workers('holder', 'waiter', 'newcomer')
  const lock = granted(await holder.take('job'))
  const seen = watch(waiter.take('job', 5_000))
  await stage.settle()
  const gate = new Gate()
  stage.store.next('tryInsert', gate.before)
  await stage.memory.deleteIfOwner('job', lock.fencingToken)
  await gate.reached
  expect(await newcomer.take('job')).toBeUndefined()
  gate.open()
  await stage.settle()
  expect(seen.state).toBe('resolved')
})

test('one more waiter than allowed is refused, and told when to come back', async () => {
  const stage = await Stage.started({ engine: { maxWaiters: 2 } })
  const [holder, one, two, three] = await stage.workers('holder', 'one', 'two', 'three')
  await holder.take('job')
  watch(one.take('job', 5_000))
  watch(two.take('job', 5_000))
  await stage.settle()
  const refusal = three.take('job', 1_000)
  await expect(refusal).rejects.toThrow(ContentionError)
  await expect(refusal).rejects.toMatchObject({ retryAfterMs: 1_000 })
})

test('a key that looks free and is refused, again and again, is asked for ever more seldom', async () => {
  const stage = await Stage.started()
  const [waiter] = await stage.workers('waiter')
  stage.store.always('tryInsert', async <T>() => undefined as T)
  stage.store.always('want', async <T>() => undefined as T)
  const seen = watch(waiter.take('job', 60_000))
  await stage.clock.advance(60_000)
  expect(seen).toMatchObject({ state: 'resolved', value: undefined })
  expect(stage.store.count('tryInsert')).toBeLessThan(120)
})
