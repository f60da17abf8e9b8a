import { toHttpRequest, tokenCounterOperations } from '@dlock/protocol'
import { expect, test } from 'vitest'
import { type Served, send, serve } from './serve.ts'

const owner = { 'X-Owner-Id': 'ops' }

async function read(server: Served): Promise<unknown> {
  const { status, text } = await send(server, { path: '/v1/tokens' })
  expect(status).toBe(200)
  return JSON.parse(text)
}

async function advance(
  server: Served,
  above: unknown,
): Promise<{ status: number; answer: unknown }> {
  const { status, text } = await send(server, {
    ...toHttpRequest(tokenCounterOperations.advanceTokenCounter, { above } as never),
    headers: { ...owner, 'Content-Type': 'application/json' },
  })
  return { status, answer: JSON.parse(text) }
}

test('the counter is read, and moved forward only (INV-04)', async () => {
  const server = await serve()
  expect(await read(server)).toEqual({})
  const forward = { status: 200, answer: { highestToken: '9007199254740993' } }
  expect(await advance(server, '9007199254740993')).toEqual(forward)
  expect(await advance(server, '12')).toEqual(forward)
  expect(await read(server)).toEqual(forward.answer)
  expect(server.lines).toContainEqual(
    expect.objectContaining({
      event: 'tokens_advanced',
      level: 'warn',
      ownerId: 'ops',
      above: '12',
    }),
  )
})

test('the next token is above', async () => {
  const server = await serve()
  await advance(server, '500')
  const sessionId = await server.engine.openSession('w', 10_000)
  const lock = await server.engine.forSession(sessionId).tryAcquire('k', 'w', 1_000)
  expect(lock?.fencingToken).toBe(501n)
})

test.each(['0', '-1', '01', '9223372036854775808', 12, null, '9223372036854775807'])(
  'above %j is refused, and nothing moves',
  async (above) => {
    const server = await serve()
    const { status, answer } = await advance(server, above)
    expect(status).toBe(400)
    expect(answer).toMatchObject({ details: { fields: [{ field: 'above' }] } })
    expect(await read(server)).toEqual({})
  },
)

test('only an operator may look or move it', async () => {
  const client = { name: 'c', role: 'client' } as const
  const server = await serve({ authenticate: async () => client })
  expect((await send(server, { path: '/v1/tokens' })).status).toBe(403)
  expect((await advance(server, '12')).status).toBe(403)
})
