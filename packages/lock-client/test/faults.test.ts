import { createServer, type Server, type Socket as TcpSocket } from 'node:net'
import { ContentionError, NotLeaderError } from '@dlock/lock-api'
import { systemClock } from '@dlock/system'
import { describe, expect, onTestFinished, test } from 'vitest'
import { HttpConnections } from '../src/http-connections.ts'
import type { HttpClient, OpenSocket } from '../src/index.ts'
import { LockClient } from '../src/index.ts'
import { openWsSocket } from '../src/ws-socket.ts'
import { connect, type Service, startService } from './roads.ts'
import { outcomeOf, taken } from './stage.ts'

/** Lets the first answer to one kind of call get lost, on both roads. */
function losing(
  service: Service,
  what: string,
  onLost = (): void => {},
): {
  httpClient: HttpClient
  openSocket: OpenSocket
  lost: () => number
} {
  let lost = 0
  const real = new HttpConnections(new URL(service.url), systemClock)
  onTestFinished(() => real.close())
  return {
    lost: () => lost,
    httpClient: {
      async send(call) {
        const response = await real.send(call)
        if (lost > 0 || !`${call.method} ${call.path}`.includes(what)) return response
        lost++
        onLost()
        throw new ContentionError('the answer was lost')
      },
      close: () => real.close(),
    },
    openSocket(url, listener) {
      const ids = new Set<number>()
      const socket = openWsSocket(url, {
        ...listener,
        opened: () => listener.opened(),
        message(text) {
          const frames = JSON.parse(text) as { id: number }[]
          if (lost === 0 && frames.some(({ id }) => ids.has(id))) {
            lost++
            onLost()
            socket.terminate() // as a connection does that drops with the answer on it
          } else {
            listener.message(text)
          }
        },
      })
      return {
        ...socket,
        send(text) {
          for (const { id, op } of JSON.parse(text) as { id: number; op?: string }[]) {
            if (op !== undefined && what.includes(op)) ids.add(id)
          }
          socket.send(text)
        },
      }
    },
  }
}

describe.each(['http', 'websocket'] as const)('over %s', { timeout: 30_000 }, (transport) => {
  const acquire = '/acquire'

  test('an acquire whose answer was lost adopts its grant, though others wait in line', async () => {
    const service = await startService()
    const { httpClient, openSocket, lost } = losing(service, acquire)
    const client = connect(transport, service, { httpClient, openSocket })
    const session = await client.openSession('worker')
    const other = await connect(transport, service).openSession('other')
    const acquiring = session.acquire('k', { maxWaitMs: 5_000 })
    const waiting = other.acquire('k', { maxWaitMs: 20_000 })
    const handle = await acquiring
    expect(handle?.ownerId).toBe('worker')
    expect(lost()).toBe(1)
    await session.release(handle as NonNullable<typeof handle>)
    expect((await waiting)?.fencingToken).toBeGreaterThan(handle?.fencingToken ?? 0n)
  })

  test('an acquire that is given up in the moment of its grant leaves none behind', async () => {
    const service = await startService()
    const controller = new AbortController()
    const session = await connect(transport, service).openSession('worker')
    const stop = service.engine.onEvent(({ type }) => {
      if (type === 'lock_granted') controller.abort(new Error('enough'))
    })
    const acquiring = session.acquire('k', { signal: controller.signal })
    await expect(acquiring).rejects.toThrow('enough')
    stop()
    expect(await service.engine.inspect('k')).toBeUndefined()
  })

  test('an acquire that is given up after its answer was lost leaves none behind', async () => {
    const service = await startService()
    const controller = new AbortController()
    const { httpClient, openSocket, lost } = losing(service, acquire, () => {
      controller.abort(new Error('enough'))
    })
    const client = connect(transport, service, { httpClient, openSocket })
    const session = await client.openSession('worker')
    const acquiring = session.acquire('k', { signal: controller.signal })
    await expect(acquiring).rejects.toThrow('enough')
    expect(lost()).toBe(1)
    expect(await service.engine.inspect('k')).toBeUndefined()
  })

  test('a release whose answer was lost is unknown; the next grant has another token', async () => {
    const service = await startService()
    const { httpClient, openSocket } = losing(service, 'release DELETE /v1/locks')
    const client = connect(transport, service, { httpClient, openSocket })
    const session = await client.openSession('worker')
    const first = await taken(session, 'k')
    if (transport === 'http') {
      // By its path alone a release cannot be told from a session's end.
      expect(await session.release(first)).toBe(true)
      return
    }
    await expect(session.release(first)).rejects.toThrow(ContentionError)
    const second = await taken(session, 'k')
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken)
    expect(await session.release(first)).toBe(false)
    session.checkStillHeld(second)
  })

  test('a server that is restarted is gone on with: sessions and locks live on in the store', async () => {
    const first = await startService()
    const client = connect(transport, first)
    const session = await client.openSession('worker')
    const handle = await taken(session, 'k')
    await first.close({ withinMs: 0 })
    await startService(first.port, first.store)
    await session.confirmStillHeld(handle)
    expect(await session.release(handle)).toBe(true)
  })

  test('no server at all: ContentionError, and nobody says "held"', async () => {
    const service = await startService()
    const client = connect(transport, service)
    const session = await client.openSession('worker')
    await service.close({ withinMs: 0 })
    await expect(session.acquire('k')).rejects.toThrow(ContentionError)
    await expect(client.inspect('k')).rejects.toThrow(ContentionError)
    await expect(client.openSession('another')).rejects.toThrow(ContentionError)
  })

  test('a server that shuts down politely ends waits with a retryable error', async () => {
    const service = await startService()
    const session = await connect(transport, service).openSession('worker')
    const other = await connect(transport, service).openSession('other')
    await taken(other, 'k')
    const waiting = outcomeOf(session.acquire('k', { maxWaitMs: 20_000 }))
    while ((await service.engine.inspect('k'))?.waiterCount !== 1) {
      await new Promise((resolve) => setImmediate(resolve))
    }
    await service.close()
    while (!waiting.settled) await new Promise((resolve) => setImmediate(resolve))
    const { error } = waiting
    expect(error instanceof NotLeaderError || error instanceof ContentionError).toBe(true)
  })

  test('an answer that is not in the words of the service is a ContentionError', async () => {
    const url = await answering((socket) => {
      socket.end('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\nConnection: close\r\n\r\noops')
    })
    const client = new LockClient({ url, transport })
    await expect(client.inspect('k')).rejects.toThrow(/HTTP 502/)
    await client.close()
  })
})

describe('auto', () => {
  test('falls back to HTTP where upgrades are refused, and stays with it for a while', async () => {
    const service = await startService()
    let upgrades = 0
    const client = connect('auto', service, {
      openSocket(url, listener) {
        upgrades++
        return openWsSocket(new URL('/nowhere', url), listener)
      },
    })
    const session = await client.openSession('worker')
    const handle = await taken(session, 'k')
    expect(await session.release(handle)).toBe(true)
    expect(upgrades).toBe(1)
  })

  test('uses one connection for all sessions and calls of the client', async () => {
    const service = await startService()
    let opened = 0
    const client = connect('auto', service, {
      openSocket(url, listener) {
        opened++
        return openWsSocket(url, listener)
      },
    })
    const sessions = await Promise.all(['a', 'b', 'c'].map((name) => client.openSession(name)))
    await Promise.all(sessions.map((session, i) => taken(session, `k${i}`)))
    expect(opened).toBe(1)
  })
})

describe('plain HTTP', () => {
  test('a connection that is not made within its time is given up', async () => {
    const connections = new HttpConnections(new URL('http://192.0.2.1:1'), {
      ...systemClock,
      // No packet leaves for that address: the time-out is what is tested, so it is over at once.
      setTimer: (_, fire, options) => systemClock.setTimer(1, fire, options),
    })
    const sending = connections.send({
      method: 'GET',
      path: '/',
      headers: {},
      body: undefined,
      connectTimeoutMs: 500,
      signal: new AbortController().signal,
    })
    await expect(sending).rejects.toThrow(ContentionError)
    connections.close()
  })
})

/** A server that says the same to everybody. */
async function answering(answer: (socket: TcpSocket) => void): Promise<string> {
  const server: Server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`
}
