import { request as httpRequest } from 'node:http'
import { operations, toHttpRequest } from '@dlock/protocol'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Call } from '../src/call.ts'
import { callers, connect, openSession } from './callers.ts'
import { faultyStore } from './faulty-store.ts'
import { eventually, type Served, serve } from './serve.ts'

/** Sends an acquire whose answer nobody awaits. @returns how the caller goes away */
function acquireAndLeave({ port }: Served, key: string, sessionId: string): () => void {
  const spelled = toHttpRequest(operations.acquire, { key, sessionId, waitMillis: 30_000 })
  const { method, path, body } = spelled
  const headers = { ...spelled.headers, 'X-Owner-Id': 'worker' }
  const request = httpRequest({ host: '127.0.0.1', port, method, path, headers, agent: false })
  request.on('error', () => {}) // "socket hang up": it is the test that hangs up
  request.end(body)
  return () => request.destroy()
}

function watchAbandoning(): { readonly times: () => number } {
  const spy = vi.spyOn(Call.prototype, 'abandon')
  onTestFinished(() => spy.mockRestore())
  return { times: () => spy.mock.calls.length }
}

test('HTTP: who disconnects during a wait leaves the queue, and no grant behind', async () => {
  const served = await serve()
  const caller = await callers.HTTP(served)
  const [holder, waiter] = [await openSession(caller), await openSession(caller)]
  const { fencingToken } = await caller.call('acquire', { key: 'k', sessionId: holder })

  const leave = acquireAndLeave(served, 'k', waiter)
  await eventually(() => served.engine.gauges().waiters).toBe(1)
  leave()
  await eventually(() => served.engine.gauges().waiters).toBe(0)

  await caller.call('release', { key: 'k', fencingToken })
  expect(await caller.call('inspect', { key: 'k' })).toEqual({ held: false, key: 'k' })
})

test('HTTP: a grant that was made while its caller went away is released', async () => {
  const { store, held, calls } = faultyStore()
  const served = await serve({ store })
  const caller = await callers.HTTP(served)
  const sessionId = await openSession(caller)
  const abandoning = watchAbandoning()
  let letGo = (): void => {}
  held.set('tryInsert', new Promise((resolve) => (letGo = resolve)))

  const leave = acquireAndLeave(served, 'k', sessionId)
  await eventually(() => calls.get('tryInsert')).toBe(1)
  leave()
  await eventually(abandoning.times).toBeGreaterThan(0)
  letGo()

  await eventually(() => calls.get('deleteIfOwner')).toBe(1)
  expect(await store.read('k')).toBeUndefined()
})

test('multiplexed: a cancelled wait is answered, and leaves no grant behind', async () => {
  const served = await serve()
  const caller = await callers.HTTP(served)
  const connection = await connect(served)
  const [holder, waiter] = [await openSession(caller), await openSession(caller)]
  const { fencingToken } = await caller.call('acquire', { key: 'k', sessionId: holder })

  const answer = connection.ask('acquire', { key: 'k', sessionId: waiter, waitMillis: 30_000 })
  await eventually(() => served.engine.gauges().waiters).toBe(1)
  connection.sendRaw([{ id: 1, cancel: true }])
  expect(await answer).toMatchObject({ error: { code: 'LOCK_CONTENDED' } })

  await caller.call('release', { key: 'k', fencingToken })
  expect(await caller.call('inspect', { key: 'k' })).toMatchObject({ held: false })
})

test('multiplexed: a cancel that comes too late, or of nothing, changes nothing', async () => {
  const connection = await connect(await serve())
  await connection.ask('inspect', { key: 'k' })
  connection.sendRaw([
    { id: 1, cancel: true },
    { id: 99, cancel: true },
  ])
  expect(await connection.ask('inspect', { key: 'k' })).toMatchObject({ out: { held: false } })
})

test('multiplexed: a connection that drops abandons its waits, and its sessions live on', async () => {
  const served = await serve()
  const caller = await callers.HTTP(served)
  const connection = await connect(served)
  const [holder, waiter] = [await openSession(caller), await openSession(caller)]
  const { fencingToken } = await caller.call('acquire', { key: 'k', sessionId: holder })
  for (const _ of [1, 2, 3]) {
    void connection.ask('acquire', { key: 'k', sessionId: waiter, waitMillis: 30_000 })
  }
  await eventually(() => served.engine.gauges().waiters).toBe(3)

  connection.socket.terminate()
  await eventually(() => served.engine.gauges().waiters).toBe(0)
  await caller.call('release', { key: 'k', fencingToken })
  expect(await caller.call('inspect', { key: 'k' })).toMatchObject({ held: false })
  await caller.call('acquire', { key: 'other', sessionId: waiter })
})

test('multiplexed: a grant that was made while its connection dropped is released', async () => {
  const { store, held, calls } = faultyStore()
  const served = await serve({ store })
  const sessionId = await openSession(await callers.HTTP(served))
  const connection = await connect(served)
  const abandoning = watchAbandoning()
  let letGo = (): void => {}
  held.set('tryInsert', new Promise((resolve) => (letGo = resolve)))

  void connection.ask('acquire', { key: 'k', sessionId })
  await eventually(() => calls.get('tryInsert')).toBe(1)
  connection.socket.terminate()
  await eventually(abandoning.times).toBeGreaterThan(0)
  letGo()

  await eventually(() => calls.get('deleteIfOwner')).toBe(1)
  expect(await store.read('k')).toBeUndefined()
})

test('P-22: a hundred waits leave no listener behind, and no warning', async () => {
  const warnings: Error[] = []
  const warn = (warning: Error): void => void warnings.push(warning)
  process.on('warning', warn)
  onTestFinished(() => void process.off('warning', warn))
  const served = await serve()
  const connection = await connect(served)
  const caller = await callers.HTTP(served)
  const sessionId = await openSession(caller)
  const grants = Array.from({ length: 100 }, (_, index) =>
    connection.ask('acquire', { key: `k${index}`, sessionId, waitMillis: 30_000 }),
  )
  expect((await Promise.all(grants)).filter((answer) => 'out' in answer)).toHaveLength(100)
  await new Promise(setImmediate) // warnings are told a tick later
  expect(warnings).toEqual([])
})
