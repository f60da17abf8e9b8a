import { ContentionError } from '@dlock/lock-api'
import { MAX_CALLS_IN_FLIGHT } from '@dlock/protocol'
import { ManualClock } from '@dlock/testing'
import { describe, expect, test } from 'vitest'
import type { WireCall } from '../src/channel.ts'
import { inspectHop } from '../src/hops.ts'
import { WebSocketChannel } from '../src/websocket.ts'
import { ScriptedSocket } from './scripted-socket.ts'
import { outcomeOf } from './stage.ts'

const TIMEOUT_MS = 5_000

function call(input: object, signal?: AbortSignal): WireCall {
  const patience = { hop: inspectHop, timeoutMs: TIMEOUT_MS }
  return { name: 'inspect', ownerId: 'worker', input, ...patience, ...(signal && { signal }) }
}

function scene() {
  const clock = new ManualClock()
  const { open, sockets } = ScriptedSocket.opener()
  const channel = new WebSocketChannel(new URL('http://server:7400/base/'), open, clock)
  /** The one that is open, or opens now. */
  const opened = async (): Promise<ScriptedSocket> => {
    await clock.advance(0)
    const socket = sockets.at(-1)
    if (socket === undefined) throw new Error('no socket was opened')
    socket.listener.opened()
    await clock.advance(0)
    return socket
  }
  return { clock, sockets, channel, opened }
}

describe('the multiplexed connection', () => {
  test('is opened when it is needed, once, below the path of the service', async () => {
    const { channel, sockets, opened } = scene()
    expect(sockets).toHaveLength(0)
    void channel.call(call({ key: 'a' })).catch(() => {})
    void channel.call(call({ key: 'b' })).catch(() => {})
    await opened()
    expect(sockets.map(({ url }) => url.href)).toEqual(['ws://server:7400/base/v1/connect'])
  })

  test('calls of one turn share a message, and answers may come in any order', async () => {
    const { channel, opened } = scene()
    const a = channel.call(call({ key: 'a' }))
    const b = channel.call(call({ key: 'b' }))
    const socket = await opened()
    expect(socket.messages).toEqual([
      [
        { id: 1, op: 'inspect', in: { key: 'a' }, owner: 'worker' },
        { id: 2, op: 'inspect', in: { key: 'b' }, owner: 'worker' },
      ],
    ])
    socket.say({ id: 2, out: { of: 'b' } }, { id: 1, out: { of: 'a' } })
    expect([await a, await b]).toEqual([
      { id: 1, out: { of: 'a' } },
      { id: 2, out: { of: 'b' } },
    ])
  })

  test('a message is cut before it is longer than a server takes', async () => {
    const { channel, opened } = scene()
    const key = 'x'.repeat(100_000)
    const calls = [1, 2, 3, 4, 5].map(() => channel.call(call({ key })).catch(() => {}))
    const socket = await opened()
    expect(socket.messages.map((message) => message.length)).toEqual([3, 2])
    socket.drop('the test is over')
    await Promise.all(calls)
  })

  test('a call that is given up is cancelled, and its answer is still awaited', async () => {
    const { channel, clock, opened } = scene()
    const controller = new AbortController()
    const answer = channel.call(call({ key: 'k' }, controller.signal))
    const socket = await opened()
    controller.abort()
    await clock.advance(0)
    expect(socket.frames.at(-1)).toEqual({ id: 1, cancel: true })
    socket.say({ id: 1, out: { late: true } })
    expect(await answer).toEqual({ id: 1, out: { late: true } })
  })

  test('a call that is given up before the connection is there is never sent', async () => {
    const { channel, opened } = scene()
    const controller = new AbortController()
    const answer = outcomeOf(channel.call(call({ key: 'k' }, controller.signal)))
    controller.abort(new Error('enough'))
    const socket = await opened()
    expect((answer.error as Error).message).toBe('enough')
    expect(socket.frames).toEqual([])
  })

  test('when it drops, what was in flight is unknown, and the next call opens another', async () => {
    const { channel, sockets, opened } = scene()
    const answer = outcomeOf(channel.call(call({ key: 'a' })))
    const first = await opened()
    first.drop('ECONNRESET')
    const next = channel.call(call({ key: 'b' }))
    const second = await opened()
    expect(answer.error).toBeInstanceOf(ContentionError)
    expect((answer.error as Error).message).toContain('ECONNRESET')
    expect((answer.error as Error).message).toContain('may have happened')
    expect(sockets).toHaveLength(2)
    second.say({ id: 1, out: {} })
    await next
  })

  test('that cannot be opened in time is given up', async () => {
    const { channel, clock, sockets } = scene()
    const answer = outcomeOf(channel.call(call({ key: 'a' })))
    await clock.advance(inspectHop.connectMs)
    expect(answer.error).toBeInstanceOf(ContentionError)
    expect(sockets[0]?.isClosed).toBe(true)
    expect(clock.pendingTimers).toBe(0)
  })

  test('an answer that does not come is a time-out, which cancels the call', async () => {
    const { channel, clock, opened } = scene()
    const answer = outcomeOf(channel.call(call({ key: 'a' })))
    const socket = await opened()
    await clock.advance(TIMEOUT_MS)
    expect(answer.error).toBeInstanceOf(ContentionError)
    expect(socket.frames.at(-1)).toEqual({ id: 1, cancel: true })
  })

  test('whose other side is silent beyond a time-out is dropped; one that lives is kept', async () => {
    const { channel, clock, opened } = scene()
    const slow = channel.call(call({ key: 'a' })).catch(() => {})
    const socket = await opened()
    await clock.advance(TIMEOUT_MS)
    expect(socket.pings).toBe(1)
    socket.listener.heard()
    await clock.advance(10_000)
    expect(socket.isClosed).toBe(false)
    const silent = channel.call(call({ key: 'b' })).catch(() => {})
    await clock.advance(TIMEOUT_MS)
    expect(socket.pings).toBe(2)
    await clock.advance(1_000)
    expect(socket.isClosed).toBe(true)
    await Promise.all([slow, silent])
  })

  test('keeps the process alive while calls are in flight, and not otherwise', async () => {
    const { channel, opened } = scene()
    const first = channel.call(call({ key: 'a' }))
    const socket = await opened()
    expect(socket.keepsAlive).toBe(true)
    socket.say({ id: 1, out: {} })
    await first
    expect(socket.keepsAlive).toBe(false)
    const second = channel.call(call({ key: 'b' }))
    await Promise.resolve()
    expect(socket.keepsAlive).toBe(true)
    socket.drop('the test is over')
    await second.catch(() => {})
  })

  test('takes so many calls at once, and refuses the next before it is sent', async () => {
    const { channel, opened } = scene()
    const calls = Array.from({ length: MAX_CALLS_IN_FLIGHT }, () =>
      channel.call(call({})).catch(() => {}),
    )
    const socket = await opened()
    await expect(channel.call(call({ key: 'one more' }))).rejects.toThrow('may be in flight')
    expect(socket.calls('inspect')).toHaveLength(MAX_CALLS_IN_FLIGHT)
    socket.drop('the test is over')
    await Promise.all(calls)
  })

  test.each([['{"id":1}'], ['nonsense'], ['[{"id":1}]'], ['[{"id":1,"error":{"code":"NO"}}]']])(
    'is ended by a message that is not of the protocol: %s',
    async (text) => {
      const { channel, clock, opened } = scene()
      const answer = outcomeOf(channel.call(call({ key: 'a' })))
      const socket = await opened()
      socket.listener.message(text)
      await clock.advance(0)
      expect(socket.isClosed).toBe(true)
      expect(answer.error).toBeInstanceOf(ContentionError)
    },
  )

  test('closing it ends what is in flight, is bounded, and leaves no timer', async () => {
    const { channel, clock, opened } = scene()
    const answer = outcomeOf(channel.call(call({ key: 'a' })))
    const socket = await opened()
    await channel.close()
    expect(socket.isClosed).toBe(true)
    await clock.advance(0)
    expect(answer.error).toBeInstanceOf(ContentionError)
    expect(clock.pendingTimers).toBe(0)
    await channel.close()
  })
})
