import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { CONNECT_PATH, CONNECT_SUBPROTOCOL, Failure, MAX_MESSAGE_BYTES } from '@dlock/protocol'
import type { Clock } from '@dlock/system'
import { WebSocketServer } from 'ws'
import type { Calls } from './calls.ts'
import { Connection } from './connection.ts'
import { shuttingDown } from './handlers.ts'
import { refuseOnSocket } from './http-refusals.ts'
import { type Authenticate, identified } from './identity.ts'
import { invalid } from './invalid.ts'

const MAX_CONNECTIONS = 4_096

/** Turns upgrade requests into multiplexed connections, or refuses them with the envelope. */
export class Upgrades {
  readonly #calls: Calls
  readonly #authenticate: Authenticate
  readonly #clock: Clock
  readonly #connections = new Set<Connection>()
  readonly #sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false, // frames are small, and a lock service is no place for zlib's latency
    maxPayload: MAX_MESSAGE_BYTES,
    handleProtocols: () => CONNECT_SUBPROTOCOL,
  })
  #isClosing = false

  constructor(calls: Calls, authenticate: Authenticate, clock: Clock) {
    this.#calls = calls
    this.#authenticate = authenticate
    this.#clock = clock
    this.#sockets.on('wsClientError', (error, socket, request) => {
      this.#refuse(invalid([{ field: 'upgrade', message: error.message }]), request, socket)
    })
  }

  listenTo(server: Server): void {
    server.on('connect', (request: IncomingMessage, socket: Duplex) => {
      this.#refuse(new Failure('METHOD_NOT_ALLOWED', 'this is no proxy'), request, socket)
    })
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      if (!isForWebSocket(request)) {
        serveWithoutUpgrade(server, request, socket, head)
        return
      }
      const onError = (): unknown => socket.destroy()
      socket.on('error', onError)
      this.#admit(request).then(
        (identity) => {
          socket.off('error', onError)
          this.#sockets.handleUpgrade(request, socket, head, (webSocket) => {
            const connection = new Connection(webSocket, this.#calls, identity, this.#clock)
            this.#connections.add(connection)
            webSocket.once('close', () => this.#connections.delete(connection))
            if (this.#isClosing) connection.drain()
          })
        },
        (error: unknown) => this.#refuse(error, request, socket),
      )
    })
  }

  /** Refuses new connections, and closes each one as soon as no call of it is in flight. */
  drain(): void {
    this.#isClosing = true
    for (const connection of this.#connections) connection.drain()
  }

  terminate(): void {
    for (const connection of this.#connections) connection.terminate()
  }

  async #admit(request: IncomingMessage): Promise<Awaited<ReturnType<typeof identified>>> {
    const { headers, url } = request
    if (url !== CONNECT_PATH) throw new Failure('NOT_FOUND', `only ${CONNECT_PATH} upgrades`)
    checkOrigin(request)
    const offered = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim())
    if (offered?.includes(CONNECT_SUBPROTOCOL) !== true) {
      const message = `must offer ${CONNECT_SUBPROTOCOL}`
      throw invalid([{ field: 'Sec-WebSocket-Protocol', message }])
    }
    if (this.#isClosing) throw shuttingDown()
    if (this.#connections.size >= MAX_CONNECTIONS) {
      throw new Failure('CONTENTION_EXCEEDED', `${MAX_CONNECTIONS} connections are open already`, {
        retryAfterMs: 1_000,
      })
    }
    return identified(this.#authenticate, request)
  }

  #refuse(error: unknown, request: IncomingMessage, socket: Duplex): void {
    const { traceparent } = request.headers
    const envelope = this.#calls.refuse(
      error,
      typeof traceparent === 'string' ? traceparent : undefined,
    )
    refuseOnSocket(socket, envelope)
  }
}

function isForWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket'
}

/**
 * An offer of another protocol is to be ignored, and some clients offer HTTP/2 with every first
 * request (Java's own does). Node hands over all upgrades or none, so the request is given back to
 * it, without the offer.
 */
function serveWithoutUpgrade(
  server: Server,
  { method, url, httpVersion, rawHeaders }: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): void {
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [name = '', value = ''] = rawHeaders.slice(index, index + 2)
    if (!/^(upgrade|connection|http2-settings)$/i.test(name)) lines.push(`${name}: ${value}`)
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]))
  server.emit('connection', socket)
}

export function upgradeRequired(): Failure {
  return new Failure('UPGRADE_REQUIRED', `${CONNECT_PATH} is a WebSocket (${CONNECT_SUBPROTOCOL})`)
}

/**
 * Browsers let any page open a WebSocket to any host, this one's loopback included, and say so in
 * `Origin`. Only a page that this server's own address served may.
 */
function checkOrigin({ headers }: IncomingMessage): void {
  const { origin, host } = headers
  if (origin === undefined) return
  const isOwn = URL.canParse(origin) && new URL(origin).host === host?.toLowerCase()
  if (!isOwn) throw new Failure('FORBIDDEN', 'no page of another origin may connect')
}
