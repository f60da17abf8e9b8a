import { ContentionError } from '@dlock/lock-api'
import { agreeableService, ManualClock, ScriptedService } from '@dlock/testing'
import { beforeEach, expect, test } from 'vitest'

let clock: ManualClock
let service: ScriptedService

beforeEach(() => {
  clock = new ManualClock()
  service = new ScriptedService(agreeableService(clock))
})

test('without a script every call is answered by the service behind', async () => {
  const sessionId = await service.openSession('worker', 60_000)
  const locks = service.forSession(sessionId)
  const handle = await locks.acquire('job', 'worker', 15_000, 0)
  expect(handle?.sessionId).toBe(sessionId)
  expect(handle?.clientDeadlineNanos).toBe(clock.monotonicNanos() + 15_000_000_000n)
  expect(await service.locksOf(sessionId)).toEqual(new Set(['job']))
  await clock.advance(1_000)
  const renewed = handle && (await locks.renew(handle))
  expect(renewed?.fencingToken).toBe(handle?.fencingToken)
  expect(renewed?.clientDeadlineNanos).toBe(clock.monotonicNanos() + 15_000_000_000n)
  expect(handle && (await locks.release(handle))).toBe(true)
  expect(await service.heartbeat(sessionId, 60_000)).toBe(true)
  expect(await service.closeSession(sessionId)).toBe(0)
})

test('the agreeable service counts its tokens up, whoever asks for whatever', async () => {
  const one = service.forSession(await service.openSession('worker', 60_000))
  const two = service.forSession(await service.openSession('worker', 60_000))
  const first = await one.tryAcquire('job', 'worker', 1_000)
  const second = await two.tryAcquire('job', 'worker', 1_000)
  expect(second && first && second.fencingToken > first.fencingToken).toBe(true)
})

test('scripted calls follow their directions in turn, and the rest the standing one', async () => {
  const locks = service.forSession('session')
  service.next(
    'tryAcquire',
    async () => undefined,
    () => Promise.reject(new ContentionError('blip')),
  )
  expect(await locks.tryAcquire('job', 'worker', 1_000)).toBeUndefined()
  await expect(locks.tryAcquire('job', 'worker', 1_000)).rejects.toThrow('blip')
  expect(await locks.tryAcquire('job', 'worker', 1_000)).toBeDefined()

  service.always('heartbeat', async () => false)
  service.next('heartbeat', async () => true)
  expect(await service.heartbeat('session', 1_000)).toBe(true)
  expect(await service.heartbeat('session', 1_000)).toBe(false)
  expect(await service.heartbeat('session', 1_000)).toBe(false)
  service.always('heartbeat', undefined)
  expect(await service.heartbeat('session', 1_000)).toBe(true)
})

test('a lost answer: the call is carried out, and its caller does not learn it', async () => {
  const sessionId = await service.openSession('worker', 60_000)
  service.next('acquire', async (proceed) => {
    await proceed()
    throw new ContentionError('connection reset')
  })
  const locks = service.forSession(sessionId)
  await expect(locks.acquire('job', 'worker', 1_000, 0)).rejects.toThrow('connection reset')
  expect(await service.locksOf(sessionId)).toEqual(new Set(['job']))
})

test('calls are kept with their arguments and their session, and can be waited for', async () => {
  const second = service.called('renew', 2)
  const sessionId = await service.openSession('worker', 60_000)
  const locks = service.forSession(sessionId)
  const handle = await locks.tryAcquire('job', 'worker', 1_000)
  if (handle === undefined) throw new Error('must be granted')
  await locks.renew(handle)
  await locks.renew(handle)
  await second
  await service.called('renew')
  expect(service.calls).toEqual([
    { name: 'openSession', args: ['worker', 60_000], sessionId: undefined },
    { name: 'tryAcquire', args: ['job', 'worker', 1_000], sessionId },
    { name: 'renew', args: [handle], sessionId },
    { name: 'renew', args: [handle], sessionId },
  ])
})
