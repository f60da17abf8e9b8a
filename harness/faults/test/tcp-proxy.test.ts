import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { ManualClock } from '@dlock/testing'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { TcpProxy } from '../src/index.ts'

/** Answers each chunk with `echo:` and the chunk, and remembers what it was asked. */
let echo: Server
let asked: string[]
let port: number

beforeEach(async () => {
  asked = []
  echo = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      asked.push(chunk.toString())
      echo.emit('asked')
      socket.write(`echo:${chunk.toString()}`)
    })
  })
  echo.listen(0, '127.0.0.1')
  await once(echo, 'listening')
  port = (echo.address() as AddressInfo).port
})

afterEach(() => void echo.close())

async function open(proxy: TcpProxy): Promise<Socket> {
  const socket = connect(proxy.port, proxy.host)
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** `once` would reject when the close comes from an error. */
const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => void socket.once('close', () => resolve()))

const answer = async (socket: Socket): Promise<string> => String((await once(socket, 'data'))[0])

test('passes bytes both ways, and the end of a stream', async () => {
  await using proxy = await TcpProxy.start({ port })
  const socket = await open(proxy)
  socket.write('a')
  expect(await answer(socket)).toBe('echo:a')
  expect(proxy.connections).toBe(1)
  socket.end()
  await closed(socket)
  expect(proxy.connections).toBe(0)
})

test('a large answer arrives whole', async () => {
  const size = 8 * 1024 * 1024
  const big = createServer((socket) => {
    socket.on('error', () => {})
    socket.end(Buffer.alloc(size))
  })
  big.listen(0, '127.0.0.1')
  await once(big, 'listening')
  await using proxy = await TcpProxy.start({ port: (big.address() as AddressInfo).port })
  const socket = await open(proxy)
  let received = 0
  for await (const chunk of socket) received += (chunk as Buffer).length
  expect(received).toBe(size)
  big.close()
})

test('a black hole swallows what is on its way, and gives it back when it is mended', async () => {
  await using proxy = await TcpProxy.start({ port })
  const before = await open(proxy)
  proxy.blackHole()
  const during = await open(proxy)
  before.write('a')
  during.write('b')
  // Bytes through another way round prove that time enough has passed for these two.
  const direct = connect(port, '127.0.0.1')
  direct.write('direct')
  expect(await answer(direct)).toBe('echo:direct')
  direct.destroy()
  expect(asked).toEqual(['direct'])
  proxy.pass()
  expect(await Promise.all([answer(before), answer(during)])).toEqual(['echo:a', 'echo:b'])
})

test('a slow network delays each direction, and keeps the order', async () => {
  const clock = new ManualClock()
  await using proxy = await TcpProxy.start({ port }, clock)
  const socket = await open(proxy)
  proxy.slow(1_000)
  socket.write('a')
  while (clock.pendingTimers === 0) await new Promise(setImmediate)
  await clock.advance(999)
  expect(asked).toEqual([])
  const arrived = once(echo, 'asked')
  await clock.advance(1)
  await arrived
  expect(asked).toEqual(['a'])
  const reply = answer(socket)
  while (clock.pendingTimers === 0) await new Promise(setImmediate)
  await clock.advance(1_000)
  expect(await reply).toBe('echo:a')
})

test('dropped replies: the request arrives, the answer never does, and no later one either', async () => {
  await using proxy = await TcpProxy.start({ port })
  const socket = await open(proxy)
  let received = ''
  socket.on('data', (chunk) => {
    received += String(chunk)
  })
  proxy.dropReplies()
  const arrived = once(echo, 'asked')
  socket.write('a')
  await arrived
  expect(asked).toEqual(['a'])
  const cut = closed(socket)
  proxy.pass()
  await cut
  expect(received).toBe('')
})

test('refuse resets what is connected and what connects, until it passes again', async () => {
  await using proxy = await TcpProxy.start({ port })
  const before = await open(proxy)
  const cut = closed(before)
  proxy.refuse()
  await cut
  const during = connect(proxy.port, proxy.host)
  const [error] = (await once(during, 'error')) as [NodeJS.ErrnoException]
  expect(error.code).toBe('ECONNRESET')
  proxy.pass()
  const after = await open(proxy)
  after.write('c')
  expect(await answer(after)).toBe('echo:c')
})

test('reset cuts the connections there are, and takes new ones', async () => {
  await using proxy = await TcpProxy.start({ port })
  const first = await open(proxy)
  const failed = once(first, 'error')
  proxy.reset()
  const [error] = (await failed) as [NodeJS.ErrnoException]
  expect(error.code).toBe('ECONNRESET')
  const second = await open(proxy)
  second.write('b')
  expect(await answer(second)).toBe('echo:b')
})

test('a target that is not there resets the client', async () => {
  echo.close()
  await once(echo, 'close')
  await using proxy = await TcpProxy.start({ port })
  const socket = connect(proxy.port, proxy.host)
  const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException]
  expect(error.code).toBe('ECONNRESET')
})

test('disposing closes everything, twice if need be', async () => {
  const proxy = await TcpProxy.start({ port })
  const socket = await open(proxy)
  const cut = closed(socket)
  await proxy[Symbol.asyncDispose]()
  await proxy[Symbol.asyncDispose]()
  await cut
})
