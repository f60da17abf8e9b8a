import type { Clock } from '@dlock/system'
import { type Channel, shortenedBy, type WireAnswer, type WireCall } from './channel.ts'
import { toNanos } from './deadline.ts'
import type { WebSocketChannel } from './websocket.ts'

/**
 * How long plain HTTP is used after a connection could not be made: long enough that a network
 * that lets no WebSocket through is not asked at every call, short enough that a server that was
 * just down is multiplexed to again.
 */
const HTTP_FOR_MS = 10_000

/** The multiplexed connection where it can be had, plain HTTP where it cannot. */
export class AutoChannel implements Channel {
  readonly #webSocket: WebSocketChannel
  readonly #http: Channel
  readonly #clock: Clock
  #httpUntil = 0n

  constructor(webSocket: WebSocketChannel, http: Channel, clock: Clock) {
    this.#webSocket = webSocket
    this.#http = http
    this.#clock = clock
  }

  async call(call: WireCall): Promise<WireAnswer> {
    if (this.#webSocket.isConnected) return this.#webSocket.call(call)
    const beganAt = this.#clock.monotonicNanos()
    const channel = (await this.#canConnect(call.hop.connectMs)) ? this.#webSocket : this.#http
    call.signal?.throwIfAborted()
    return channel.call(shortenedBy(call, this.#clock, beganAt))
  }

  async close(): Promise<void> {
    await Promise.all([this.#webSocket.close(), this.#http.close()])
  }

  async #canConnect(connectMs: number): Promise<boolean> {
    if (this.#clock.monotonicNanos() < this.#httpUntil) return false
    try {
      await this.#webSocket.connect(connectMs)
      return true
    } catch {
      this.#httpUntil = this.#clock.monotonicNanos() + toNanos(HTTP_FOR_MS)
      return false
    }
  }
}
