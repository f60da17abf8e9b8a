import { LockEngine } from '@dlock/engine'
import { MemoryStore } from '@dlock/store-memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createLockServer, createLog, LockMetrics, type LockServerOptions } from '../src/index.ts'

function newServer(options: Partial<LockServerOptions> = {}) {
  const store = new MemoryStore()
  const engine = new LockEngine({ store })
  const metrics = new LockMetrics(store.backendId())
  const log = createLog({ level: 'silent' })
  const server = createLockServer({ engine, metrics, log, ...options })
  onTestFinished(() => server.close())
  return server
}

describe('open to the network is said aloud, or not at all', () => {
  test.each(['0.0.0.0', '::', '10.0.0.1', 'example.com', '', '127.0.0.1.example.com', '128.0.0.1'])(
    '%j is refused without authentication',
    async (host) => {
      await expect(newServer().listen({ host, port: 0 })).rejects.toThrow(
        /refusing to listen on ".*": it is not a loopback address.*say insecure/,
      )
    },
  )

  test.each(['127.0.0.1', 'localhost', '127.1.2.3'])('%s is loopback', async (host) => {
    const { url } = await newServer().listen({ host, port: 0 })
    expect((await fetch(`${url}/livez`)).status).toBe(200)
  })

  test('insecure says it', async () => {
    const { port } = await newServer().listen({ host: '0.0.0.0', port: 0, insecure: true })
    expect((await fetch(`http://127.0.0.1:${port}/livez`)).status).toBe(200)
  })

  test('with authentication it need not be said', async () => {
    const server = newServer({ authenticate: async () => undefined })
    const { port } = await server.listen({ host: '0.0.0.0', port: 0 })
    expect((await fetch(`http://127.0.0.1:${port}/v1/locks/k`)).status).toBe(401)
  })
})

test('a port that is taken is an error that names it', async () => {
  const { port } = await newServer().listen({ port: 0 })
  await expect(newServer().listen({ port })).rejects.toThrow(`127.0.0.1:${port}`)
})

test('leases that nobody asks for are the configured ones', async () => {
  const options = { defaultLockTtlMs: 5_000, defaultSessionTtlMs: 7_000, maxLockTtlMs: 8_000 }
  const { url } = await newServer(options).listen({ port: 0 })
  const headers = { 'X-Owner-Id': 'w', 'Content-Type': 'application/json' }
  const post = async (path: string, body: object): Promise<Record<string, unknown>> => {
    const sent = { method: 'POST', headers, body: JSON.stringify(body) }
    return (await (await fetch(url + path, sent)).json()) as never
  }
  const session = await post('/v1/sessions', { ownerId: 'w' })
  expect(session['ttlMillis']).toBe(7_000)
  const { sessionId } = session
  expect((await post('/v1/locks/k/acquire', { sessionId }))['ttlMillis']).toBe(5_000)
  const refused = await post('/v1/locks/k/acquire', { sessionId, ttlMillis: 8_001 })
  expect(refused).toMatchObject({
    code: 'VALIDATION_FAILED',
    details: { fields: [{ field: 'ttlMillis', message: 'must be from 1 to 8000, got 8001' }] },
  })
})

test.each([
  [
    { defaultSessionTtlMs: 999 },
    'defaultSessionTtlMs must be a whole number from 1000 to 60000, got 999',
  ],
  [
    { defaultSessionTtlMs: 60_001 },
    'defaultSessionTtlMs must be a whole number from 1000 to 60000, got 60001',
  ],
  [{ maxLockTtlMs: 10_000 }, 'defaultLockTtlMs must be a whole number from 1 to 10000, got 30000'],
  [
    { maxLockTtlMs: 10_000, defaultLockTtlMs: 5_000 },
    'defaultSessionTtlMs must be a whole number from 1000 to 10000, got 15000',
  ],
  [
    { maxLockTtlMs: Number.NaN },
    'maxLockTtlMs must be a whole number from 1000 to 31536000000, got NaN',
  ],
  [{ defaultLockTtlMs: 1.5 }, 'defaultLockTtlMs must be a whole number from 1 to 3600000, got 1.5'],
])('leases that cannot be are refused at once: %j', (options, message) => {
  expect(() => newServer(options)).toThrow(new RangeError(message))
})

test('no session outlives the longest lease', async () => {
  const leases = { maxLockTtlMs: 10_000, defaultLockTtlMs: 5_000, defaultSessionTtlMs: 5_000 }
  const { url } = await newServer(leases).listen({ port: 0 })
  const headers = { 'X-Owner-Id': 'w', 'Content-Type': 'application/json' }
  const body = JSON.stringify({ ownerId: 'w', ttlMillis: 10_001 })
  const refused = await fetch(`${url}/v1/sessions`, { method: 'POST', headers, body })
  expect([refused.status, await refused.json()]).toMatchObject([
    400,
    {
      details: {
        fields: [{ field: 'ttlMillis', message: 'must be from 1000 to 10000, got 10001' }],
      },
    },
  ])
})
