import { createServer, type RequestListener, type Server } from 'node:http'
import {
  type AddressInfo,
  createServer as createTcpServer,
  type Server as TcpServer,
} from 'node:net'
import { systemClock } from '@dlock/system'
import { afterEach, expect, test } from 'vitest'
import { presentOnce } from '../src/index.ts'

const limits = { connectTimeoutMs: 2_000, readTimeoutMs: 300, maxReplyBytes: 100 }
const servers: (Server | TcpServer)[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function urlOf(server: Server | TcpServer): Promise<URL> {
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/submit`)
}

const present = (url: URL): ReturnType<typeof presentOnce> =>
  presentOnce(
    { url, method: 'POST', headers: { 'x-a': 'b' }, body: Buffer.from('hello') },
    limits,
    systemClock,
  )

const http = (listener: RequestListener): Promise<URL> => urlOf(createServer(listener))

test('a complete reply, whatever its status, is an answer', async () => {
  const url = await http((req, res) => {
    const parts: Buffer[] = []
    req.on('data', (part: Buffer) => parts.push(part))
    req.on('end', () => {
      res.statusCode = 503
      res.end(
        `${String(req.method)} ${String(req.headers['x-a'])} ${Buffer.concat(parts).toString()}`,
      )
    })
  })
  const presented = await present(url)
  expect(presented).toMatchObject({ kind: 'answered', reply: { status: 503 } })
  if (presented.kind === 'answered') expect(presented.reply.body.toString()).toBe('POST b hello')
})

test('a refused connection proves that nothing was presented', async () => {
  const url = await http(() => undefined)
  await new Promise((resolve) => servers.pop()?.close(resolve))
  expect(await present(url)).toMatchObject({ kind: 'not-presented' })
})

test('silence, a reset, a cut-off or an endless reply leave the outcome unknown', async () => {
  let connections = 0
  const tcp = (reply: string | undefined): Promise<URL> =>
    urlOf(
      createTcpServer((socket) => {
        connections += 1
        socket.on('error', () => undefined)
        socket.once('data', () => {
          if (reply === undefined) socket.destroy()
          else socket.end(reply)
        })
      }),
    )
  const silent = await http(() => undefined)
  expect(await present(silent)).toMatchObject({
    kind: 'unknown',
    why: expect.stringContaining('300 ms'),
  })
  expect(await present(await tcp(undefined))).toMatchObject({ kind: 'unknown' })
  const cut = 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf'
  expect(await present(await tcp(cut))).toMatchObject({ kind: 'unknown' })
  expect(await present(await tcp('not HTTP at all\r\n\r\n'))).toMatchObject({ kind: 'unknown' })
  const long = await http((_, res) => res.end('x'.repeat(101)))
  expect(await present(long)).toMatchObject({
    kind: 'unknown',
    why: expect.stringContaining('more than 100 bytes'),
  })
  expect(connections, 'one socket each').toBe(3)
})
