import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { errorEnvelope, errorTable } from '@dlock/protocol'
import fastify from 'fastify'
import { afterEach, expect, test } from 'vitest'
import {
  fencedOutAnswer,
  fencingTokenOf,
  fencingTokenPlugin,
  guardCodes,
  InvalidFencingTokenError,
  invalidTokenAnswer,
  requireFencingToken,
  sendAnswer,
  traceIdOf,
} from '../src/index.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const refused = { passed: false, key: 'payout:17', presentedToken: 7n, storedToken: 9n } as const

const BAD_TOKENS = [
  undefined,
  '',
  '0',
  '-1',
  '+1',
  '01',
  ' 1',
  '1 ',
  '1.0',
  '1e3',
  '0x1f',
  '١',
  'one',
  '7, 7',
  '9223372036854775808',
  '99999999999999999999',
]

test.each(BAD_TOKENS)('X-Fencing-Token %j is no token', (value) => {
  expect(() => fencingTokenOf({ 'x-fencing-token': value })).toThrow(InvalidFencingTokenError)
})

test('P-25: the largest token is read exactly', () => {
  const headers = { 'x-fencing-token': '9223372036854775807' }
  expect(fencingTokenOf(headers)).toBe(2n ** 63n - 1n)
})

test('the guard’s codes, statuses and verdicts are the protocol’s', () => {
  for (const [code, { status, retrySafe }] of Object.entries(guardCodes)) {
    const row = errorTable[code as keyof typeof errorTable]
    expect({ code, status: row.status }).toEqual({ code, status })
    if (row.retrySafe !== 'if-repeatable') {
      expect({ code, retrySafe: row.retrySafe }).toEqual({ code, retrySafe })
    }
  }
})

test('FR-16: FENCED_OUT carries both tokens, the resource and the owner, in the envelope', () => {
  const resource = { resourceType: 'account', resourceId: '17' }
  const { status, body } = fencedOutAnswer(refused, resource, 'worker-7', TRACE)
  expect(status).toBe(409)
  expect(errorEnvelope.faults(body)).toEqual([])
  expect(body).toMatchObject({
    code: 'FENCED_OUT',
    retrySafe: false,
    traceId: TRACE,
    details: {
      presentedToken: '7',
      highestToken: '9',
      resourceType: 'account',
      resourceId: '17',
      ownerId: 'worker-7',
    },
  })
})

test('INVALID_TOKEN is the envelope, and repeats nothing of a header', () => {
  const { status, body } = invalidTokenAnswer(new InvalidFencingTokenError('X is bad'), TRACE)
  expect(status).toBe(400)
  expect(errorEnvelope.faults(body)).toEqual([])
  expect(body.code).toBe('INVALID_TOKEN')
})

test('the trace id is the traceparent’s, or a new one', () => {
  expect(traceIdOf({ traceparent: `00-${TRACE}-b7ad6b7169203331-01` })).toBe(TRACE)
  for (const traceparent of [undefined, 'x', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`]) {
    const made = traceIdOf({ traceparent })
    expect(made).toMatch(/^[0-9a-f]{32}$/)
    expect(made).not.toBe('0'.repeat(32))
  }
})

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function listening(server: Server): Promise<string> {
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('plain middleware: a handler runs only with a valid token', async () => {
  const seen: bigint[] = []
  const server = createServer((req, res) => {
    requireFencingToken(req, res, () => {
      const token = fencingTokenOf(req.headers)
      seen.push(token)
      sendAnswer(res, fencedOutAnswer(refused, { resourceType: 'x', resourceId: 'y' }, 'o', TRACE))
    })
  })
  const url = await listening(server)
  const bad = await fetch(url, { method: 'POST', headers: { 'X-Fencing-Token': '07' } })
  expect(bad.status).toBe(400)
  expect(await bad.json()).toMatchObject({ code: 'INVALID_TOKEN' })
  const good = await fetch(url, { method: 'POST', headers: { 'X-Fencing-Token': '7' } })
  expect(good.status).toBe(409)
  expect(await good.json()).toMatchObject({ code: 'FENCED_OUT' })
  expect(seen).toEqual([7n])
})

test('Fastify: every route of the scope wants a token, those outside do not', async () => {
  const app = fastify()
  app.get('/open', () => 'open')
  await app.register(async (writes) => {
    await writes.register(fencingTokenPlugin)
    writes.post('/write', (request) => fencingTokenOf(request.headers).toString())
  })
  expect((await app.inject({ url: '/open' })).body).toBe('open')
  const bad = await app.inject({ method: 'POST', url: '/write' })
  expect(bad.statusCode).toBe(400)
  expect(errorEnvelope.faults(bad.json())).toEqual([])
  const headers = { 'x-fencing-token': '9007199254740993' }
  expect((await app.inject({ method: 'POST', url: '/write', headers })).body).toBe(
    '9007199254740993',
  )
  await app.close()
})
