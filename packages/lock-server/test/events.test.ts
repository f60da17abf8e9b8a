import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { LockEngine, LockEvent } from '@dlock/engine'
import { EVENTS_PATH, type WireEvent, wireEvent } from '@dlock/protocol'
import { type Clock, systemClock } from '@dlock/system'
import { ManualClock } from '@dlock/testing'
import { expect, onTestFinished, test } from 'vitest'
import { EventStream } from '../src/event-stream.ts'
import { callers, openSession } from './callers.ts'
import { eventually, serve } from './serve.ts'

interface Listener {
  readonly response: IncomingMessage
  readonly events: WireEvent[]
  readonly comments: string[]
  readonly ended: Promise<void>
}

async function listen({ port }: { readonly port: number }): Promise<Listener> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path: EVENTS_PATH, agent: false }
    const request = get(options, resolve).on('error', reject)
    onTestFinished(() => void request.destroy())
  })
  const events: WireEvent[] = []
  const comments: string[] = []
  let rest = ''
  response.on('data', (chunk: Buffer) => {
    const blocks = (rest + chunk.toString()).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const [, type, data] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? []
      if (data === undefined) comments.push(block)
      else events.push(JSON.parse(data) as WireEvent)
      if (data !== undefined) expect(events.at(-1)?.type).toBe(type)
    }
  })
  response.on('error', () => {})
  const ended = new Promise<void>((resolve) => response.on('close', resolve))
  await eventually(() => comments).toContain(': listening')
  return { response, events, comments, ended }
}

test('L10 tells of grants, releases, revocations and sessions, in order, without session ids', async () => {
  const served = await serve()
  const caller = await callers.HTTP(served)
  const listener = await listen(served)
  expect(listener.response.headers['content-type']).toBe('text/event-stream; charset=utf-8')
  const sessionId = await openSession(caller)
  const { fencingToken } = await caller.call('acquire', { key: 'k', sessionId })
  await caller.call('release', { key: 'k', fencingToken })
  const second = await caller.call('acquire', { key: 'k', sessionId })
  await caller.call('revoke', { key: 'k', operator: 'ops', reason: 'holder is stuck' })
  await caller.call('closeSession', { sessionId })
  await eventually(() => listener.events.at(-1)?.type).toBe('session_closed')
  expect(listener.events.map(({ type }) => type)).toEqual([
    'session_opened',
    'lock_granted',
    'lock_released',
    'lock_granted',
    'lock_revoked',
    'session_closed',
  ])
  for (const event of listener.events) expect(wireEvent.faults(event)).toEqual([])
  expect(listener.events[4]).toMatchObject({
    key: 'k',
    operator: 'ops',
    reason: 'holder is stuck',
    previousToken: second.fencingToken,
  })
  expect(JSON.stringify(listener.events)).not.toContain(sessionId)
})

test('a quiet stream says that it is alive', async () => {
  const clock = new ManualClock()
  const listener = await listen(await serve({ clock }))
  await clock.advance(15_000)
  await eventually(() => listener.comments).toContain(': keep-alive')
})

/** An event stream of its own, whose events the test makes: 64 KiB each, so that few are many. */
async function stream(
  clock: Clock = systemClock,
): Promise<{ port: number; tell(count: number): void }> {
  let listener: ((event: LockEvent) => void) | undefined
  const engine = { onEvent: (listening: typeof listener) => ((listener = listening), () => {}) }
  const events = new EventStream(engine as unknown as LockEngine, clock)
  const server = createServer((_, response) => events.open(response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const event: LockEvent = {
    type: 'lock_revoked',
    at: new Date(0),
    key: 'k',
    operator: 'ops',
    reason: 'r'.repeat(65_536),
    previousOwnerId: 'worker',
    previousToken: 1n,
    newTokenFloor: 1n,
  }
  const { port } = server.address() as AddressInfo
  return { port, tell: (count) => void Array.from({ length: count }, () => listener?.(event)) }
}

test('a reader that is too slow misses events, is told how many, and holds up nobody', async () => {
  const told = await stream()
  const slow = await listen(told)
  const quick = await listen(told)
  slow.response.pause()
  const total = 400 // 25 MiB: more than the kernel and the stream keep for a reader
  for (let count = 1; count <= total; count += 1) {
    told.tell(1)
    await eventually(() => quick.events.length).toBe(count)
  }
  slow.response.resume()
  await eventually(() => slow.events.at(-1)?.type).toBe('gap')
  const [gap] = slow.events.filter((event) => event.type === 'gap')
  expect(slow.events.length - 1 + (gap?.missed ?? 0)).toBe(total)
  expect(gap?.missed).toBeGreaterThan(0)
  told.tell(1)
  await eventually(() => slow.events.at(-1)?.type).toBe('lock_revoked')
})

test('a reader that reads nothing at all is dropped', async () => {
  const clock = new ManualClock()
  const told = await stream(clock)
  const stuck = await listen(told)
  stuck.response.pause()
  for (let count = 1; count <= 400; count += 1) {
    told.tell(1)
    await new Promise(setImmediate) // so that the kernel takes what it will
  }
  await clock.advance(15_000)
  await clock.advance(15_000)
  stuck.response.resume()
  await stuck.ended
  expect(stuck.response.complete).toBe(false)
})

test('shutting down ends every stream', async () => {
  const served = await serve()
  const listener = await listen(served)
  await served.close()
  await listener.ended
  expect(listener.response.complete).toBe(true)
})
