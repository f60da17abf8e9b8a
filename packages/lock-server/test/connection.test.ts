import { connect as connectSocket } from 'node:net'
import {
  CONNECT_PATH,
  CONNECT_SUBPROTOCOL,
  errorEnvelope,
  MAX_CALLS_IN_FLIGHT,
  MAX_MESSAGE_BYTES,
  MAX_WAITS_IN_FLIGHT,
  serverFrame,
} from '@dlock/protocol'
import { ManualClock } from '@dlock/testing'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { callers, connect, openSession } from './callers.ts'
import { faultyStore } from './faulty-store.ts'
import { eventually, serve } from './serve.ts'

describe('what is no frame closes the connection, and says why', () => {
  test.each([
    ['no JSON', '[{', 1008, 'not a JSON array of frames'],
    [
      'a frame alone',
      { id: 1, op: 'inspect', in: { key: 'k' } },
      1008,
      'not a JSON array of frames',
    ],
    ['null', 'null', 1008, 'not a JSON array of frames'],
    ['a frame without an id', [{ op: 'inspect', in: { key: 'k' } }], 1008, 'a frame without an id'],
    ['a frame with id 0', [{ id: 0, op: 'inspect', in: {} }], 1008, 'a frame without an id'],
    ['null for a frame', [null], 1008, 'a frame without an id'],
    [
      'an id twice',
      [
        { id: 1, op: 'x' },
        { id: 1, op: 'x' },
      ],
      1008,
      'ids must increase',
    ],
    ['a message of 2 MiB and more', 'x'.repeat(MAX_MESSAGE_BYTES + 1), 1009, ''],
  ])('%s', async (_, message, code, reason) => {
    const connection = await connect(await serve())
    connection.sendRaw(message)
    expect(await connection.closed).toEqual({ code, reason })
  })

  test('bytes', async () => {
    const connection = await connect(await serve())
    connection.socket.send(Buffer.from('[]'), { binary: true })
    expect(await connection.closed).toEqual({ code: 1003, reason: 'frames are text' })
  })
})

describe('a frame that is wrong but has an id is answered, and the connection goes on', () => {
  test.each([
    ['an unknown operation', { op: 'toString', in: {} }, 'op'],
    ['a list, which is HTTP’s', { op: 'listLocks', in: {} }, 'op'],
    ['no input', { op: 'inspect' }, 'in'],
    ['an unknown field', { op: 'inspect', in: { key: 'k' }, more: 1 }, 'more'],
    ['an owner that is no text', { op: 'inspect', in: { key: 'k' }, owner: 5 }, 'owner'],
    ['an input that is no object', { op: 'inspect', in: 5 }, ''],
    ['a cancel with more', { cancel: true, op: 'inspect' }, 'cancel'],
  ])('%s', async (_, frame, field) => {
    const connection = await connect(await serve())
    const id = connection.nextId()
    const answer = connection.answerTo(id)
    connection.sendRaw([{ id, ...frame }])
    expect(await answer).toMatchObject({ id, error: { code: 'VALIDATION_FAILED' } })
    expect(JSON.stringify(await answer)).toContain(`{"field":"${field}",`)
    expect(await connection.ask('inspect', { key: 'k' })).toHaveProperty('out')
  })
})

test('fuzz: frames of any shape are answered with an output or an envelope, or the connection closes', async () => {
  const served = await serve()
  const text = fc.string({ maxLength: 20 })
  const input = fc.oneof(
    fc.jsonValue(),
    fc.record(
      {
        key: fc.oneof(text, fc.jsonValue()),
        sessionId: fc.oneof(text, fc.jsonValue()),
        fencingToken: fc.oneof(fc.constant('1'), fc.jsonValue()),
        ttlMillis: fc.oneof(fc.integer(), fc.jsonValue()),
      },
      { requiredKeys: [] },
    ),
  )
  const op = fc.oneof(
    fc.constantFrom(
      'openSession',
      'heartbeat',
      'closeSession',
      'acquire',
      'renew',
      'release',
      'inspect',
      'revoke',
    ),
    text,
  )
  const frame = fc.record(
    { op, in: input, owner: fc.oneof(fc.constant('worker'), text), traceparent: text },
    { requiredKeys: ['op'] },
  )
  const connection = await connect(served)
  await fc.assert(
    fc.asyncProperty(fc.array(frame, { minLength: 1, maxLength: 5 }), async (frames) => {
      const sent = frames.map((fields) => ({ id: connection.nextId(), ...fields }))
      const answers = sent.map(({ id }) => connection.answerTo(id))
      connection.sendRaw(sent)
      for (const answer of await Promise.all(answers)) {
        expect(serverFrame.accepts(answer)).toBe(true)
        if (!('error' in answer)) continue
        expect(errorEnvelope.faults(answer.error)).toEqual([])
        expect(answer.error.code).not.toBe('INTERNAL')
      }
    }),
    { numRuns: 300 },
  )
  expect(served.lines.filter(({ event }) => event === 'internal_error')).toEqual([])
})

test('the calls of one message are answered in one message', async () => {
  const connection = await connect(await serve())
  const ids = Array.from({ length: 50 }, () => connection.nextId())
  const answers = ids.map((id) => connection.answerTo(id))
  connection.sendRaw(ids.map((id) => ({ id, op: 'inspect', in: { key: `k${id}` } })))
  await Promise.all(answers)
  expect(connection.messages.map((frames) => frames.length)).toEqual([50])
})

test('calls beyond the limit are refused before anything is done', async () => {
  const { store, held, calls } = faultyStore()
  const connection = await connect(await serve({ store }))
  let letGo = (): void => {}
  held.set('read', new Promise((resolve) => (letGo = resolve)))
  const ids = Array.from({ length: MAX_CALLS_IN_FLIGHT + 1 }, () => connection.nextId())
  const answers = ids.map((id) => connection.answerTo(id))
  connection.sendRaw(ids.map((id) => ({ id, op: 'inspect', in: { key: 'k' } })))
  expect(await answers.at(-1)).toMatchObject({
    error: { code: 'CONTENTION_EXCEEDED', retrySafe: true, retryAfterMillis: 100 },
  })
  expect(calls.get('read')).toBe(MAX_CALLS_IN_FLIGHT)
  letGo()
  const others = await Promise.all(answers.slice(0, -1))
  expect(others.filter((frame) => 'out' in frame)).toHaveLength(MAX_CALLS_IN_FLIGHT)
})

test('waits never take the room of the release that they wait for', async () => {
  const served = await serve({ maxWaiters: MAX_WAITS_IN_FLIGHT })
  const caller = await callers.HTTP(served)
  const connection = await connect(served)
  const [holder, waiter] = [await openSession(caller), await openSession(caller)]
  const { fencingToken } = await caller.call('acquire', { key: 'k', sessionId: holder })
  const ids = Array.from({ length: MAX_WAITS_IN_FLIGHT + 1 }, () => connection.nextId())
  const answers = ids.map((id) => connection.answerTo(id))
  const input = { key: 'k', sessionId: waiter, waitMillis: 30_000 }
  connection.sendRaw(ids.map((id) => ({ id, op: 'acquire', owner: 'worker', in: input })))
  expect(await answers.at(-1)).toMatchObject({ error: { code: 'CONTENTION_EXCEEDED' } })
  expect(await connection.ask('release', { key: 'k', fencingToken })).toEqual({ out: {} })
  expect(await answers[0]).toHaveProperty('out')
})

test('a client that does not read is not read from, and nothing is lost once it does', async () => {
  const connection = await connect(await serve())
  const client = connection.socket
  const pausing = vi.spyOn(WebSocket.prototype, 'pause')
  onTestFinished(() => pausing.mockRestore())
  const serverPaused = (): boolean => pausing.mock.contexts.some((socket) => socket !== client)

  client.pause()
  const key = 'k'.repeat(500)
  let sent = 0
  while (!serverPaused()) {
    const frames = Array.from({ length: 1_000 }, () => {
      sent += 1
      return { id: connection.nextId(), op: 'inspect', in: { key } }
    })
    await new Promise((resolve) => client.send(JSON.stringify(frames), resolve))
    await new Promise(setImmediate)
  }
  client.resume()
  await eventually(() => connection.messages.flat().length).toBe(sent)
})

describe('dead peers', () => {
  test('who answers no ping is cut off', async () => {
    const clock = new ManualClock()
    const served = await serve({ clock })
    const socket = new WebSocket(`${served.url}${CONNECT_PATH}`, CONNECT_SUBPROTOCOL, {
      autoPong: false,
    })
    const closed = new Promise<number>((resolve) => socket.on('close', resolve))
    const pinged = new Promise((resolve) => socket.once('ping', resolve))
    await new Promise((resolve) => socket.once('open', resolve))
    await clock.advance(15_000)
    await pinged
    await clock.advance(15_000)
    expect(await closed).toBe(1006)
  })

  test('who answers stays', async () => {
    const clock = new ManualClock()
    const connection = await connect(await serve({ clock }))
    for (let round = 1; round <= 3; round += 1) {
      const pinged = new Promise((resolve) => connection.socket.once('ping', resolve))
      await clock.advance(15_000)
      await pinged
      expect(await connection.ask('inspect', { key: 'k' })).toHaveProperty('out')
    }
  })
})

test('a page of the server’s own origin may connect', async () => {
  const served = await serve()
  const socket = new WebSocket(`${served.url}${CONNECT_PATH}`, CONNECT_SUBPROTOCOL, {
    origin: served.url,
  })
  onTestFinished(() => socket.terminate())
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  expect(socket.protocol).toBe('dlock.v1')
})

test('a peer that resets during the handshake harms nobody', async () => {
  const served = await serve({
    authenticate: async () => {
      await new Promise(setImmediate)
      return { name: undefined, role: 'operator' }
    },
  })
  const socket = connectSocket(served.port, '127.0.0.1')
  await new Promise((resolve) => socket.once('connect', resolve))
  socket.write(
    `GET ${CONNECT_PATH} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: dlock.v1\r\n\r\n`,
  )
  socket.resetAndDestroy()
  expect(await (await connect(served)).ask('inspect', { key: 'k' })).toHaveProperty('out')
})
