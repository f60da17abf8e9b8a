import { context, type Span, type SpanContext, type Tracer, trace } from '@opentelemetry/api'
import { expect, onTestFinished, test } from 'vitest'
import { callers, connect, openSession } from './callers.ts'
import { send, serve } from './serve.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const traceparent = `00-${traceId}-b7ad6b7169203331-01`

test('NFR-08: what happens has a stable name, a trace, an owner, and the fields that tell it', async () => {
  const served = await serve()
  const caller = await callers.HTTP(served)
  const sessionId = await openSession(caller)
  const other = await openSession(caller, 'other')
  const { fencingToken } = await caller.call('acquire', { key: 'k', sessionId })
  await caller.refusal('acquire', { key: 'k', sessionId: other }, 'other')
  await caller.call('release', { key: 'k', fencingToken })
  await caller.refusal('release', { key: 'k', fencingToken })
  await caller.call('acquire', { key: 'k', sessionId })
  await caller.call('revoke', { key: 'k', operator: 'ops', reason: 'holder is stuck' })
  await caller.call('closeSession', { sessionId })

  const calls = served.lines.slice(1) // after "server_listening"
  expect(calls.map(({ event, level }) => [event, level])).toEqual([
    ['session_opened', 'info'],
    ['session_opened', 'info'],
    ['lock_granted', 'info'],
    ['lock_contended', 'debug'],
    ['lock_released', 'info'],
    ['lock_lost', 'info'],
    ['lock_granted', 'info'],
    ['lock_revoked', 'warn'],
    ['session_closed', 'info'],
  ])
  for (const line of calls) {
    expect(line).toMatchObject({
      service: 'lockd',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
      spanId: expect.stringMatching(/^[0-9a-f]{16}$/),
      ownerId: expect.stringMatching(/^(worker|other)$/),
    })
  }
  expect(calls[2]).toMatchObject({ key: 'k', fencingToken, ownerId: 'worker' })
  expect(calls[7]).toMatchObject({
    operator: 'ops',
    reason: 'holder is stuck',
    previousOwnerId: 'worker',
  })
})

test('no line holds a session’s id, whatever was called and refused', async () => {
  const served = await serve()
  const caller = await callers.HTTP(served)
  const connection = await connect(served)
  const sessionId = await openSession(caller)
  const { fencingToken } = await caller.call('acquire', { key: 'k', sessionId })
  await caller.call('heartbeat', { sessionId, renew: [{ key: 'k', fencingToken }] })
  await caller.refusal('heartbeat', { sessionId }, 'mallory')
  await caller.refusal('acquire', { key: 'k', sessionId, more: sessionId })
  await connection.ask('acquire', { key: '', sessionId })
  await send(served, { path: `/v1/sessions/${sessionId}/nowhere` })
  await send(served, { method: 'PUT', path: `/v1/sessions/${sessionId}` })
  await caller.call('closeSession', { sessionId })
  await caller.refusal('heartbeat', { sessionId })
  expect(JSON.stringify(served.lines)).not.toContain(sessionId)
})

test('a caller’s trace id is the log’s and the envelope’s', async () => {
  const served = await serve()
  const reply = await send(served, {
    method: 'DELETE',
    path: '/v1/locks/k',
    headers: { 'X-Owner-Id': 'worker', 'X-Fencing-Token': '1', traceparent },
  })
  expect(JSON.parse(reply.text)).toMatchObject({ code: 'LOCK_LOST', traceId })
  expect(served.lines.at(-1)).toMatchObject({ event: 'lock_lost', traceId })
})

test('so it is of what never became a call, and over the multiplexed connection', async () => {
  const served = await serve()
  const nowhere = await send(served, { path: '/nowhere', headers: { traceparent } })
  expect(JSON.parse(nowhere.text)).toMatchObject({ traceId })
  const connection = await connect(served)
  const id = connection.nextId()
  const answer = connection.answerTo(id)
  connection.sendRaw([{ id, op: 'inspect', in: {}, traceparent }])
  expect(await answer).toMatchObject({ error: { code: 'VALIDATION_FAILED', traceId } })
})

test.each([
  '',
  'x',
  `01-${traceId}`,
  `ff-${traceId}-b7ad6b7169203331-01`,
  `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
  `00-${traceId}-0000000000000000-01`,
  `${traceparent}-more`,
  traceparent.toUpperCase(),
])('a traceparent of %j is ignored, and the call has a trace id of its own', async (malformed) => {
  const served = await serve()
  const reply = await send(served, { path: '/nowhere', headers: { traceparent: malformed } })
  const { traceId: own } = JSON.parse(reply.text) as { traceId: string }
  expect(own).toMatch(/^[0-9a-f]{32}$/)
  expect(own).not.toBe(traceId)
})

interface Told {
  readonly name: string
  readonly parentSpanId: string | undefined
  readonly attributes: Record<string, unknown>
  status: unknown
  ended: number
}

/** A provider that remembers what it was told: the API is all that the server may use. */
function registerSpans(): Told[] {
  const spans: Told[] = []
  const tracer = {
    startSpan(name: string, _: unknown, parent = context.active()): Span {
      const caller = trace.getSpanContext(parent)
      const told: Told = {
        name,
        parentSpanId: caller?.spanId,
        attributes: {},
        status: undefined,
        ended: 0,
      }
      spans.push(told)
      const own: SpanContext = {
        traceId: caller?.traceId ?? 'a'.repeat(32),
        spanId: String(spans.length).padStart(16, '0'),
        traceFlags: 1,
      }
      return {
        spanContext: () => own,
        setAttribute: (key: string, value: unknown) => void (told.attributes[key] = value),
        setStatus: (status: unknown) => void (told.status = status),
        end: () => void (told.ended += 1),
      } as unknown as Span
    },
  } as Tracer
  trace.setGlobalTracerProvider({ getTracer: () => tracer })
  onTestFinished(() => trace.disable())
  return spans
}

test('acquire, renew and release are spans that carry the token, below the caller’s', async () => {
  const spans = registerSpans()
  const served = await serve()
  const caller = await callers.HTTP(served)
  const sessionId = await openSession(caller)
  const { fencingToken } = await caller.call('acquire', { key: 'k', sessionId })
  await caller.call('renew', { key: 'k', sessionId, fencingToken })
  await caller.call('release', { key: 'k', fencingToken })
  const headers = { 'X-Owner-Id': 'worker', 'X-Fencing-Token': fencingToken, traceparent }
  const reply = await send(served, { method: 'DELETE', path: '/v1/locks/k', headers })

  expect(spans.map(({ name }) => name)).toEqual([
    'lock.acquire',
    'lock.renew',
    'lock.release',
    'lock.release',
  ])
  for (const span of spans) {
    expect(span).toMatchObject({ attributes: { 'lock.token': fencingToken }, ended: 1 })
  }
  expect(spans[3]).toMatchObject({
    parentSpanId: 'b7ad6b7169203331',
    attributes: { 'lock.refusal': 'LOCK_LOST' },
    status: undefined,
  })
  expect(JSON.parse(reply.text)).toMatchObject({ traceId })
  expect(served.lines.at(-1)).toMatchObject({ traceId, spanId: '0000000000000004' })
})
