import { expect, test } from 'vitest'
import { granted, Stage, TTL_MS } from './stage.ts'
import { unreachable } from './staged-store.ts'

test('expired grants and sessions are reaped about once a second, at jittered times', async () => {
  const stage = await Stage.started()
  const worker = await stage.worker('worker', 2_000)
  await worker.take('job')
  await stage.clock.advance(10_000)
  expect(stage.store.count('reapExpired')).toBeGreaterThanOrEqual(10)
  expect(stage.store.count('reapExpired')).toBeLessThanOrEqual(20)
})

test('a lease that runs out is told once, with its token', async () => {
  const stage = await Stage.started()
  const [worker] = await stage.workers('worker')
  await worker.take('job')
  await stage.clock.advance(TTL_MS - 1)
  expect(stage.told('lease_expired')).toHaveLength(0)
  await stage.clock.advance(5_000)
  expect(stage.told('lease_expired')).toMatchObject([
    { key: 'job', ownerId: 'worker', fencingToken: 1n },
  ])
  expect(stage.engine.gauges().held).toBe(0)
})

test('a lease that another process prolonged is not told as expired', async () => {
  const here = await Stage.started()
  const there = await Stage.started({ clock: here.clock, memory: here.memory })
  const [worker] = await here.workers('worker')
  const lock = granted(await worker.take('job'))
  for (let turn = 0; turn < 5; turn += 1) {
    await here.clock.advance(TTL_MS / 2)
    await there.engine.renewGrant(worker.sessionId, 'job', lock.fencingToken, TTL_MS)
    await here.engine.heartbeat(worker.sessionId, 60_000)
  }
  expect(here.told('lease_expired')).toHaveLength(0)
  await here.clock.advance(3 * TTL_MS)
  expect(here.told('lease_expired')).toHaveLength(1)
})

test('a session that runs out is told once, with the grants that went with it', async () => {
  const stage = await Stage.started()
  const worker = await stage.worker('worker', 3_000)
  await worker.take('a')
  await worker.take('b')
  await stage.clock.advance(5_000)
  expect(stage.told('session_expired')).toMatchObject([{ ownerId: 'worker' }])
  expect(stage.told('lease_expired').length).toBe(2)
  expect(stage.engine.gauges()).toEqual({ held: 0, waiters: 0, sessions: 0 })
})

test('a store that fails while it is swept is swept again', async () => {
  const stage = await Stage.started()
  const worker = await stage.worker('worker', 3_000)
  await worker.take('job')
  for (const verb of ['reapExpired', 'read', 'describeSession', 'highestToken'] as const) {
    stage.store.always(verb, unreachable)
  }
  await stage.clock.advance(TTL_MS + 5_000)
  expect(stage.events.map(({ type }) => type)).toEqual(['session_opened', 'lock_granted'])
  for (const verb of ['reapExpired', 'read', 'describeSession', 'highestToken'] as const) {
    stage.store.always(verb, undefined)
  }
  await stage.clock.advance(1_000)
  expect(stage.told('session_expired')).toHaveLength(1)
})

test('a revocation is told with its operator and reason, and frees the key for who waits', async () => {
  const stage = await Stage.started({ mute: true })
  const [holder, waiter] = await stage.workers('holder', 'waiter')
  const lock = granted(await holder.take('job'))
  const next = waiter.take('job', 5_000)
  await stage.settle()
  const stale = await stage.engine.revoke('job', 'ada', 'stuck', lock.fencingToken + 1n)
  expect(stale).toEqual({ kind: 'stale', currentToken: lock.fencingToken })
  const outcome = await holder.locks.forceRevoke('job', 'ada', 'stuck')
  expect(outcome.revoked).toBe(true)
  expect(stage.told('lock_revoked')).toMatchObject([
    { key: 'job', operator: 'ada', reason: 'stuck', previousToken: lock.fencingToken },
  ])
  expect(granted(await next).fencingToken).toBeGreaterThan(outcome.newTokenFloor ?? 0n)
  expect((await holder.locks.forceRevoke('free', 'ada', 'stuck')).revoked).toBe(false)
  await expect(holder.locks.forceRevoke('job', ' ', 'stuck')).rejects.toThrow(/operator/)
})

test('a listener that throws harms nobody, and one that left hears nothing', async () => {
  const stage = await Stage.started()
  const heard: string[] = []
  stage.engine.onEvent(() => {
    throw new Error('a bug in a listener')
  })
  const off = stage.engine.onEvent(({ type }) => heard.push(type))
  const [worker] = await stage.workers('worker')
  off()
  granted(await worker.take('job'))
  expect(heard).toEqual(['session_opened'])
  expect(stage.told('lock_granted')).toHaveLength(1)
})
