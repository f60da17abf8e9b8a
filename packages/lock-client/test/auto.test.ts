import { ContentionError } from '@dlock/lock-api'
import { ManualClock } from '@dlock/testing'
import { expect, test } from 'vitest'
import { AutoChannel } from '../src/auto.ts'
import type { Channel, WireCall } from '../src/channel.ts'
import { inspectHop } from '../src/hops.ts'
import { WebSocketChannel } from '../src/websocket.ts'
import { ScriptedSocket } from './scripted-socket.ts'
import { outcomeOf } from './stage.ts'

function scene() {
  const clock = new ManualClock()
  const { open, sockets } = ScriptedSocket.opener()
  let requests = 0
  const http: Channel = {
    call: async () => {
      requests++
      return { out: 'by http' }
    },
    close: async () => {},
  }
  const channel = new AutoChannel(
    new WebSocketChannel(new URL('http://x'), open, clock),
    http,
    clock,
  )
  return { clock, sockets, channel, requests: () => requests }
}

const call = (input: object): WireCall => ({
  name: 'inspect',
  ownerId: undefined,
  input,
  hop: inspectHop,
  timeoutMs: 5_000,
})

test('what is refused goes over HTTP, for a while; then the connection is tried again', async () => {
  const { clock, sockets, channel, requests } = scene()
  const first = channel.call(call({}))
  sockets[0]?.drop('the server answered the upgrade with HTTP 404')
  expect(await first).toEqual({ out: 'by http' })
  expect(await channel.call(call({}))).toEqual({ out: 'by http' })
  expect(sockets).toHaveLength(1)
  await clock.advance(10_000)
  const later = channel.call(call({}))
  sockets[1]?.listener.opened()
  await clock.advance(0)
  sockets[1]?.say({ id: 1, out: 'by connection' })
  expect(await later).toMatchObject({ out: 'by connection' })
  expect(requests()).toBe(2)
})

test('a network that swallows the upgrade costs one time-out, not one per call', async () => {
  const { clock, sockets, channel } = scene()
  const calls = outcomeOf(Promise.all([channel.call(call({})), channel.call(call({}))]))
  await clock.advance(inspectHop.connectMs)
  expect(calls.value).toEqual([{ out: 'by http' }, { out: 'by http' }])
  expect(await channel.call(call({}))).toEqual({ out: 'by http' })
  expect(sockets).toHaveLength(1)
})

test('a connection that drops in the middle is no reason for HTTP: the call is not made twice', async () => {
  const { clock, sockets, channel, requests } = scene()
  const dropped = outcomeOf(channel.call(call({})))
  sockets[0]?.listener.opened()
  await clock.advance(0)
  sockets[0]?.drop('ECONNRESET')
  await clock.advance(0)
  expect(dropped.error).toBeInstanceOf(ContentionError)
  expect(requests()).toBe(0)
})
