import { ContentionError } from '@dlock/lock-api'
import { CONNECT_PATH } from '@dlock/protocol'
import type { Clock } from '@dlock/system'
import { type Channel, shortenedBy, type WireAnswer, type WireCall } from './channel.ts'
import { Connection } from './connection.ts'
import type { OpenSocket } from './socket.ts'

/** One multiplexed connection for all calls of the client, opened again when it is needed. */
export class WebSocketChannel implements Channel {
  readonly #url: URL
  readonly #openSocket: OpenSocket
  readonly #clock: Clock
  #connection: Connection | undefined
  #isClosed = false

  /** @param base of the service, `http:` or `https:` */
  constructor(base: URL, openSocket: OpenSocket, clock: Clock) {
    this.#url = new URL(base.pathname.replace(/\/$/, '') + CONNECT_PATH, base)
    this.#url.protocol = base.protocol === 'https:' ? 'wss:' : 'ws:'
    this.#openSocket = openSocket
    this.#clock = clock
  }

  get isConnected(): boolean {
    return this.#connection?.isOpen === true
  }

  /** @throws ContentionError when there is no connection within `timeoutMs` */
  async connect(timeoutMs: number): Promise<void> {
    await (this.#connection ?? this.#open(timeoutMs)).opened
  }

  async call(call: WireCall): Promise<WireAnswer> {
    if (this.#connection?.isOpen === true) return this.#connection.call(call)
    const beganAt = this.#clock.monotonicNanos()
    const connection = this.#connection ?? this.#open(call.hop.connectMs)
    await connection.opened
    call.signal?.throwIfAborted()
    return connection.call(shortenedBy(call, this.#clock, beganAt))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#connection?.close()
  }

  #open(connectTimeoutMs: number): Connection {
    if (this.#isClosed) throw new ContentionError('the client is closed: nothing was sent')
    const connection = new Connection({
      url: this.#url,
      openSocket: this.#openSocket,
      clock: this.#clock,
      connectTimeoutMs,
      onClosed: () => {
        if (this.#connection === connection) this.#connection = undefined
      },
    })
    this.#connection = connection
    return connection
  }
}
