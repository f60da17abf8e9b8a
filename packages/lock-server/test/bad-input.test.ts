import { createConnection } from 'node:net'
import {
  errorTable,
  listings,
  operations,
  toHttpRequest,
  tokenCounterOperations,
} from '@dlock/protocol'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { envelopeIn, eventually, type Reply, type Sent, type Served, send, serve } from './serve.ts'

const owner = { 'X-Owner-Id': 'worker' }
const json = { ...owner, 'Content-Type': 'application/json' }

/** Bytes as they are; the answer to the last of them. */
function sendBytes({ port }: Served, bytes: string | Buffer): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ host: '127.0.0.1', port })
    const chunks: Buffer[] = []
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('error', reject)
    socket.on('close', () => {
      const answer = Buffer.concat(chunks).toString()
      const [head = '', text = ''] = answer.split('\r\n\r\n', 2)
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1])
      const type = /content-type: (.+)/i.exec(head)?.[1]
      resolve({ status, headers: { 'content-type': type }, text })
    })
    socket.write(bytes)
  })
}

describe('what no call comes of is answered with the envelope all the same', () => {
  const cases: readonly [string, Sent, number, string][] = [
    ['no such path', { path: '/nope' }, 404, 'NOT_FOUND'],
    ['an empty key', { path: '/v1/locks/' }, 400, 'VALIDATION_FAILED'],
    ['an absolute path that is none', { path: '*', method: 'OPTIONS' }, 404, 'NOT_FOUND'],
    ['the wrong method', { path: '/v1/locks/k/acquire' }, 405, 'METHOD_NOT_ALLOWED'],
    ['a method nobody has', { path: '/v1/sessions', method: 'PROPFIND' }, 404, 'NOT_FOUND'],
    ['QUERY, which the framework knows', { path: '/v1/locks', method: 'QUERY' }, 404, 'NOT_FOUND'],
    ['OPTIONS', { path: '/v1/sessions', method: 'OPTIONS' }, 405, 'METHOD_NOT_ALLOWED'],
    ['bad percent-encoding', { path: '/v1/locks/%zz' }, 400, 'VALIDATION_FAILED'],
    ['percent-encoding that is not UTF-8', { path: '/v1/locks/%ff' }, 400, 'VALIDATION_FAILED'],
    ['an overlong encoding of a slash', { path: '/v1/locks/%c0%af' }, 400, 'VALIDATION_FAILED'],
    ['a lone surrogate', { path: '/v1/locks/%ed%a0%80' }, 400, 'VALIDATION_FAILED'],
    ['bad encoding in a query', { path: '/v1/locks?prefix=%zz' }, 400, 'VALIDATION_FAILED'],
    ['a query not in UTF-8', { path: '/v1/locks?cursor=%ed%a0%80' }, 400, 'VALIDATION_FAILED'],
    ['a control character in a key', { path: '/v1/locks/a%00b' }, 400, 'VALIDATION_FAILED'],
    ['a key of 513 bytes', { path: `/v1/locks/${'k'.repeat(513)}` }, 400, 'VALIDATION_FAILED'],
    ['a key of 5 000 bytes', { path: `/v1/locks/${'k'.repeat(5_000)}` }, 400, 'VALIDATION_FAILED'],
    [
      'headers of 20 KiB',
      { path: '/livez', headers: { a: 'b'.repeat(20_000) } },
      431,
      'HEADERS_TOO_LARGE',
    ],
    [
      'an expectation',
      { path: '/livez', headers: { Expect: 'a miracle' } },
      400,
      'VALIDATION_FAILED',
    ],
    ['a plain request for the connection', { path: '/v1/connect' }, 426, 'UPGRADE_REQUIRED'],
    [
      'an upgrade elsewhere',
      { path: '/livez', headers: { Connection: 'Upgrade', Upgrade: 'websocket' } },
      404,
      'NOT_FOUND',
    ],
    [
      'an upgrade to something else',
      { path: '/v1/connect', headers: { Connection: 'Upgrade', Upgrade: 'h2c' } },
      426,
      'UPGRADE_REQUIRED',
    ],
    [
      'an upgrade without the subprotocol',
      { path: '/v1/connect', headers: { Connection: 'Upgrade', Upgrade: 'websocket' } },
      400,
      'VALIDATION_FAILED',
    ],
    [
      'a handshake without a key',
      {
        path: '/v1/connect',
        headers: {
          Connection: 'Upgrade',
          Upgrade: 'websocket',
          'Sec-WebSocket-Protocol': 'dlock.v1',
        },
      },
      400,
      'VALIDATION_FAILED',
    ],
    [
      'a page of another origin',
      {
        path: '/v1/connect',
        headers: { Connection: 'Upgrade', Upgrade: 'websocket', Origin: 'https://evil.example' },
      },
      403,
      'FORBIDDEN',
    ],
  ]
  test.each(cases)('%s', async (_, sent, status, code) => {
    const reply = await send(await serve(), sent)
    expect([reply.status, envelopeIn(reply).code]).toEqual([status, code])
  })

  test('HEAD is refused without a body, as HEAD must be', async () => {
    const reply = await send(await serve(), { path: '/livez', method: 'HEAD' })
    expect([reply.status, reply.text]).toEqual([405, ''])
  })

  test('405 names the methods there are', async () => {
    const reply = await send(await serve(), { path: '/v1/locks/k', method: 'PUT' })
    expect(reply.headers.allow).toBe('DELETE, GET')
  })

  test.each([
    ['no HTTP at all', 'hello?\r\n\r\n', 400],
    ['a method nobody knows', 'FOO / HTTP/1.1\r\nHost: a\r\n\r\n', 400],
    ['a proxy wanted', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 405],
    ['no Host', 'GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    [
      'two lengths',
      'POST /v1/sessions HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
      400,
    ],
    [
      'a length and chunks',
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      400,
    ],
    ['a TLS hello', Buffer.from('16030100a5010000a1', 'hex'), 400],
  ])('%s', async (_, bytes, status) => {
    const reply = await sendBytes(await serve(), bytes)
    const code = status === 405 ? 'METHOD_NOT_ALLOWED' : 'VALIDATION_FAILED'
    expect([reply.status, envelopeIn(reply).code]).toEqual([status, code])
  })

  test('headers that never end are refused in time', async () => {
    const served = await serve({ headersTimeoutMs: 50, requestTimeoutMs: 60 })
    const reply = await sendBytes(served, 'GET /livez HTTP/1.1\r\nHost: a\r\nX-Slow: ')
    expect([reply.status, envelopeIn(reply).code]).toEqual([408, 'REQUEST_TIMEOUT'])
  })

  test('a body that never ends is refused in time', async () => {
    const served = await serve({ headersTimeoutMs: 50, requestTimeoutMs: 60 })
    const head = 'POST /v1/sessions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n'
    const reply = await sendBytes(served, `${head}Content-Length: 100\r\n\r\n{"owner`)
    expect([reply.status, envelopeIn(reply).code]).toEqual([408, 'REQUEST_TIMEOUT'])
  })
})

describe('an offer to speak another protocol is ignored, as HTTP asks', () => {
  const offer =
    'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n'

  test('and the request answered, again and again on one connection', async () => {
    const request = `GET /livez HTTP/1.1\r\nHost: a\r\n${offer}\r\n`
    const last = 'GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
    const { port } = await serve()
    const socket = createConnection({ host: '127.0.0.1', port })
    const received: string[] = []
    socket.on('data', (chunk) => received.push(chunk.toString()))
    const closed = new Promise((resolve) => socket.on('close', resolve))
    const answers = (): number => received.join('').split('HTTP/1.1 200').length - 1
    for (const turn of [1, 2, 3]) {
      socket.write(request)
      await eventually(answers).toBe(turn)
    }
    socket.write(last)
    await closed
    expect(answers()).toBe(4)
  })

  test('its body is read, whenever it comes', async () => {
    const { port } = await serve()
    const body = '{"ownerId":"worker"}'
    const head = `POST /v1/sessions HTTP/1.1\r\nHost: a\r\n${offer}X-Owner-Id: worker\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
    for (const split of [head.length, head.length + 7]) {
      const socket = createConnection({ host: '127.0.0.1', port })
      const answer = new Promise<string>((resolve) =>
        socket.once('data', (c) => resolve(c.toString())),
      )
      socket.write((head + body).slice(0, split))
      await new Promise(setImmediate)
      socket.write((head + body).slice(split))
      expect(await answer).toMatch(/^HTTP\/1\.1 201 /)
      socket.destroy()
    }
  })

  test('and a wait of it ends when its caller leaves', async () => {
    const served = await serve()
    const [holder, waiter] = [
      await served.engine.openSession('worker', 60_000),
      await served.engine.openSession('worker', 60_000),
    ]
    await served.engine.forSession(holder).tryAcquire('k', 'worker', 60_000)
    const body = JSON.stringify({ sessionId: waiter, waitMillis: 30_000 })
    const socket = createConnection({ host: '127.0.0.1', port: served.port })
    socket.write(
      `POST /v1/locks/k/acquire HTTP/1.1\r\nHost: a\r\n${offer}X-Owner-Id: worker\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    await eventually(() => served.engine.gauges().waiters).toBe(1)
    socket.destroy()
    await eventually(() => served.engine.gauges().waiters).toBe(0)
  })
})

describe('bodies', () => {
  const post = (body: string | Buffer, headers: Record<string, string> = json): Sent => ({
    method: 'POST',
    path: '/v1/sessions',
    headers,
    body,
  })
  const cases: readonly [string, Sent, number, string][] = [
    ['none', { method: 'POST', path: '/v1/sessions', headers: json }, 400, 'VALIDATION_FAILED'],
    ['not JSON', post('{"ownerId":'), 400, 'VALIDATION_FAILED'],
    ['JSON with a comment', post('{"ownerId":"worker"} // x'), 400, 'VALIDATION_FAILED'],
    ['a byte-order mark', post('\ufeff{"ownerId":"worker"}'), 400, 'VALIDATION_FAILED'],
    [
      'bytes that are not UTF-8',
      post(Buffer.from('7b2261223a22ff227d', 'hex')),
      400,
      'VALIDATION_FAILED',
    ],
    ['an array', post('[{"ownerId":"worker"}]'), 400, 'VALIDATION_FAILED'],
    ['a string', post('"worker"'), 400, 'VALIDATION_FAILED'],
    ['null', post('null'), 400, 'VALIDATION_FAILED'],
    ['an unknown field', post('{"ownerId":"worker","ttl":5}'), 400, 'VALIDATION_FAILED'],
    ['a prototype', post('{"ownerId":"worker","__proto__":{}}'), 400, 'VALIDATION_FAILED'],
    [
      'another media type',
      post('a=b', { ...owner, 'Content-Type': 'text/plain' }),
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    ['no media type', post('{"ownerId":"worker"}', owner), 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['more than 64 KiB', post(`{"ownerId":"${'w'.repeat(70_000)}"}`), 413, 'BODY_TOO_LARGE'],
  ]
  test.each(cases)('%s', async (_, sent, status, code) => {
    const reply = await send(await serve(), sent)
    expect([reply.status, envelopeIn(reply).code]).toEqual([status, code])
  })

  test('one of exactly 64 KiB is read', async () => {
    const padding = ' '.repeat(65_536 - '{"ownerId":"worker"}'.length)
    const reply = await send(await serve(), post(`{"ownerId":"worker"}${padding}`))
    expect(reply.status).toBe(201)
  })

  test('chunks that never end are cut off at 64 KiB', async () => {
    const head = 'POST /v1/sessions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n'
    const chunk = `10000\r\n${' '.repeat(65_536)}\r\n`
    const bytes = `${head}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}${chunk}`
    const reply = await sendBytes(await serve(), bytes)
    expect([reply.status, envelopeIn(reply).code]).toEqual([413, 'BODY_TOO_LARGE'])
  })
})

describe('each field travels in one place', () => {
  test.each([
    [
      'a key in the body',
      { path: '/v1/locks/k/acquire', body: '{"sessionId":"s","key":"k"}' },
      'key',
    ],
    [
      'a token in the body',
      { path: '/v1/locks/k/renew', body: '{"sessionId":"s","fencingToken":"1"}' },
      'fencingToken',
    ],
    [
      'a session in the query',
      { path: '/v1/locks/k/acquire?sessionId=s', body: '{}' },
      'sessionId',
    ],
    [
      'a wait in the query',
      { path: '/v1/locks/k/acquire?waitMillis=5', body: '{"sessionId":"s"}' },
      'waitMillis',
    ],
  ])('%s is refused', async (_, sent, field) => {
    const reply = await send(await serve(), { method: 'POST', headers: json, ...sent })
    expect(reply.status).toBe(400)
    const fields = envelopeIn(reply).details?.['fields'] as { field: string }[]
    expect(fields.map((fault) => fault.field)).toContain(field)
  })

  test('a write without X-Owner-Id is refused, and a read without is not', async () => {
    const served = await serve()
    const refused = await send(served, {
      method: 'POST',
      path: '/v1/sessions',
      headers: { 'Content-Type': 'application/json' },
      body: '{"ownerId":"worker"}',
    })
    expect(envelopeIn(refused).details).toEqual({
      fields: [{ field: 'X-Owner-Id', message: 'is required' }],
    })
    expect((await send(served, { path: '/v1/locks/k' })).status).toBe(200)
  })

  test.each([
    [
      'X-Owner-Id twice',
      { 'X-Owner-Id': ['worker', 'worker'], 'X-Fencing-Token': '1' },
      'VALIDATION_FAILED',
    ],
    ['X-Fencing-Token twice', { ...owner, 'X-Fencing-Token': ['1', '1'] }, 'INVALID_TOKEN'],
    ['no X-Fencing-Token', owner, 'INVALID_TOKEN'],
    ['X-Fencing-Token empty', { ...owner, 'X-Fencing-Token': '' }, 'INVALID_TOKEN'],
    [
      'X-Fencing-Token in Arabic digits',
      { ...owner, 'X-Fencing-Token': '\xd9\xa1' },
      'INVALID_TOKEN',
    ],
    ['X-Owner-Id not UTF-8', { 'X-Owner-Id': '\xff', 'X-Fencing-Token': '1' }, 'VALIDATION_FAILED'],
  ])('%s', async (_, headers, code) => {
    const reply = await send(await serve(), { method: 'DELETE', path: '/v1/locks/k', headers })
    expect([reply.status, envelopeIn(reply).code]).toEqual([400, code])
  })

  test('an owner’s name may hold any character', async () => {
    const { path, headers, body } = toHttpRequest(operations.openSession, { ownerId: 'Zoë 🔒' })
    const name = Buffer.from('Zoë 🔒').toString('latin1')
    const sent = { method: 'POST', path, headers: { ...headers, 'X-Owner-Id': name } }
    const reply = await send(await serve(), { ...sent, body: body ?? '' })
    expect(JSON.parse(reply.text)).toMatchObject({ ownerId: 'Zoë 🔒' })
  })

  test.each(['0', '1001', '05', '1e2', '-1', '1.5', '', 'ten', '5&limit=5'])(
    'a page of limit=%s is refused',
    async (limit) => {
      const reply = await send(await serve(), { path: `/v1/locks?limit=${limit}` })
      expect([reply.status, envelopeIn(reply).code]).toEqual([400, 'VALIDATION_FAILED'])
    },
  )

  test('a cursor that the store did not make is the caller’s mistake', async () => {
    const reply = await send(await serve(), { path: '/v1/sessions?cursor=made-up' })
    expect([reply.status, envelopeIn(reply).code]).toEqual([400, 'VALIDATION_FAILED'])
  })
})

test('P-02: any key goes through a path, and keys that look alike stay apart', async () => {
  const served = await serve()
  const keys = [
    'job',
    'job2',
    'job/1',
    'job/',
    'jo',
    'job%2F1',
    'job%',
    '.',
    '..',
    'a;b',
    'a?b',
    'a#b',
    'a+b',
    'a b',
    'ключ',
    '鍵',
    '🔒'.repeat(128),
    'k'.repeat(512),
  ]
  for (const key of keys) {
    const { path } = toHttpRequest(operations.inspect, { key })
    const reply = await send(served, { path })
    expect(JSON.parse(reply.text)).toEqual({ held: false, key })
  }
})

describe('fuzz: whatever comes, it is an answer or an envelope, never a 500, never a stack', () => {
  const table = Object.values({ ...operations, ...listings, ...tokenCounterOperations })
  const methods = ['GET', 'POST', 'DELETE', 'PUT', 'PATCH', 'OPTIONS']
  const segment = fc.oneof(
    fc.constantFrom(
      'v1',
      'locks',
      'sessions',
      'acquire',
      'renew',
      'revoke',
      'heartbeat',
      'k',
      '%',
      '%2F',
      '..',
      '%00',
    ),
    fc.stringMatching(/^[!-~]{0,12}$/),
  )
  const path = fc.oneof(
    fc.array(segment, { maxLength: 5 }).map((segments) => `/${segments.join('/')}`),
    fc
      .tuple(fc.constantFrom(...table), segment)
      .map(([operation, text]) =>
        operation.path.replaceAll(/\{\w+\}/g, text.replaceAll(/[/?#]/g, '')),
      ),
  )
  const value = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom('1', 'k', 's', 0, -1, 1e308, 30_000, null, '9223372036854775808', [], {}),
  )
  const field = fc.constantFrom(
    'ownerId',
    'key',
    'sessionId',
    'ttlMillis',
    'waitMillis',
    'renew',
    'operator',
    'reason',
    'expectedToken',
    '__proto__',
    'constructor',
  )
  const body = fc.oneof(
    fc.dictionary(field, value).map((fields) => JSON.stringify(fields)),
    fc.json(),
    fc.string({ maxLength: 200 }),
    fc.constant(undefined),
  )
  const headerText = fc.stringMatching(/^[\x21-\x7e\x80-\xff]{0,70}$/)
  const headers = fc.record(
    {
      'X-Owner-Id': fc.oneof(fc.constant('worker'), headerText),
      'X-Fencing-Token': fc.oneof(fc.constantFrom('1', '0', '01', '-1'), headerText),
      'X-Session-Id': headerText,
      'Content-Type': fc.constantFrom(
        'application/json',
        'application/json; charset=utf-8',
        'text/plain',
        'a/b',
        '',
      ),
      traceparent: fc.oneof(
        fc.constant('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'),
        headerText,
      ),
    },
    { requiredKeys: [] },
  )
  const sent = fc.record({ method: fc.constantFrom(...methods), path, headers, body })

  test('over HTTP', async () => {
    const served = await serve()
    await fc.assert(
      fc.asyncProperty(sent, async ({ body: text, ...request }) => {
        const reply = await send(served, { ...request, ...(text !== undefined && { body: text }) })
        if (reply.status < 300) return
        const { code } = envelopeIn(reply)
        expect(code).not.toBe('INTERNAL')
        expect(reply.status).toBe(errorTable[code].status)
      }),
      { numRuns: 400 },
    )
    expect(served.lines.filter(({ event }) => event === 'internal_error')).toEqual([])
  })
})
