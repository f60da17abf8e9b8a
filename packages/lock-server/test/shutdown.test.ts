import { createConnection } from 'node:net'
import { ManualClock } from '@dlock/testing'
import { expect, test } from 'vitest'
import { callers, connect, openSession } from './callers.ts'
import { faultyStore } from './faulty-store.ts'
import { envelopeIn, eventually, send, serve } from './serve.ts'

test('waits end with NOT_LEADER, in flight finishes, and then the connection closes with 1001', async () => {
  const { store, held, calls } = faultyStore()
  const served = await serve({ store })
  const caller = await callers.HTTP(served)
  const connection = await connect(served)
  const [holder, waiter] = [await openSession(caller), await openSession(caller)]
  await caller.call('acquire', { key: 'k', sessionId: holder })
  const wait = connection.ask('acquire', { key: 'k', sessionId: waiter, waitMillis: 30_000 })
  await eventually(() => served.engine.gauges().waiters).toBe(1)
  let letGo = (): void => {}
  held.set('read', new Promise((resolve) => (letGo = resolve)))
  const look = connection.ask('inspect', { key: 'k' })
  await eventually(() => calls.get('read')).toBe(1)

  const closed = served.close()
  expect(await wait).toMatchObject({ error: { code: 'NOT_LEADER', retrySafe: true } })
  const late = await connection.ask('acquire', { key: 'free', sessionId: waiter })
  expect(late).toMatchObject({ error: { code: 'NOT_LEADER' } })
  letGo()
  expect(await look).toMatchObject({ out: { held: true } })
  expect(await connection.closed).toEqual({ code: 1001, reason: 'shutting down' })
  await closed
  expect(await store.read('free')).toBeUndefined()
  expect(await store.read('k')).toBeDefined()
})

test('over HTTP, too, a wait ends with NOT_LEADER and 503', async () => {
  const served = await serve()
  const caller = await callers.HTTP(served)
  const [holder, waiter] = [await openSession(caller), await openSession(caller)]
  await caller.call('acquire', { key: 'k', sessionId: holder })
  const wait = caller.refusal('acquire', { key: 'k', sessionId: waiter, waitMillis: 30_000 })
  await eventually(() => served.engine.gauges().waiters).toBe(1)
  await served.close()
  expect((await wait).code).toBe('NOT_LEADER')
})

test('/readyz fails while it lasts, for whoever still has a connection', async () => {
  const { store, held, calls } = faultyStore()
  const served = await serve({ store })
  let letGo = (): void => {}
  held.set('read', new Promise((resolve) => (letGo = resolve)))
  const socket = createConnection(served.port, '127.0.0.1')
  const received: string[] = []
  socket.on('data', (chunk) => received.push(chunk.toString()))
  const ended = new Promise((resolve) => socket.on('close', resolve))
  socket.write('GET /v1/locks/k HTTP/1.1\r\nHost: a\r\n\r\n')
  await eventually(() => calls.get('read')).toBe(1)

  const closed = served.close()
  socket.write('GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n')
  await eventually(() => JSON.stringify(served.lines)).toContain('shutting down')
  letGo()
  await ended
  expect(received.join('')).toMatch(/^HTTP\/1\.1 200 .*HTTP\/1\.1 503 .*"NOT_LEADER"/s)
  await closed
})

test('what is stuck is cut off in the end', async () => {
  const { store, held, calls } = faultyStore()
  const clock = new ManualClock()
  const served = await serve({ store, clock })
  held.set('read', new Promise(() => {}))
  const connection = await connect(served)
  const overHttp = send(served, { path: '/v1/locks/k' })
  overHttp.catch(() => {})
  void connection.ask('inspect', { key: 'k' })
  await eventually(() => calls.get('read')).toBe(2)
  const idle = createConnection(served.port, '127.0.0.1')
  await new Promise((resolve) => idle.once('connect', resolve))

  const closed = served.close({ withinMs: 5_000 })
  await clock.advance(5_000)
  await closed
  expect((await connection.closed).code).toBe(1006)
  await expect(overHttp).rejects.toThrow()
})

test('afterwards nobody gets in, and closing again is nothing', async () => {
  const served = await serve()
  await served.close()
  await served.close()
  await expect(send(served, { path: '/livez' })).rejects.toThrow('ECONNREFUSED')
  await expect(connect(served)).rejects.toThrow('ECONNREFUSED')
})

test('sessions and grants outlive the server', async () => {
  const { store } = faultyStore()
  const first = await serve({ store })
  const caller = await callers.HTTP(first)
  const sessionId = await openSession(caller)
  const { fencingToken } = await caller.call('acquire', { key: 'k', sessionId })
  await first.close()
  const second = await callers.HTTP(await serve({ store }))
  const renewed = await second.call('renew', { key: 'k', sessionId, fencingToken })
  expect(renewed.fencingToken).toBe(fencingToken)
})

test('/livez answers whatever the store does, /readyz does not', async () => {
  const { store, failing } = faultyStore()
  const served = await serve({ store })
  expect((await send(served, { path: '/readyz' })).status).toBe(200)
  const { ContentionError } = await import('@dlock/lock-api')
  failing.set('*', new ContentionError('no answer'))
  expect((await send(served, { path: '/livez' })).status).toBe(200)
  const reply = await send(served, { path: '/readyz' })
  expect([reply.status, envelopeIn(reply).code]).toEqual([503, 'STORE_UNAVAILABLE'])
})
