import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { type Clock, systemClock } from '@dlock/system'

export interface TcpTarget {
  /** Default 127.0.0.1. */
  readonly host?: string
  readonly port: number
}

type Direction = 'request' | 'reply'

type Mode =
  | { readonly kind: 'pass' | 'black-hole' | 'refuse' | 'drop-replies' }
  | { readonly kind: 'slow'; readonly delayMs: number }

/** As much as a network would hold in its buffers; then the sender has to wait. */
const HELD_BYTES = 1024 * 1024

/**
 * A network between two processes that can be broken and mended while they talk. A new mode holds
 * for the connections that exist, too.
 */
export class TcpProxy implements AsyncDisposable {
  readonly host = '127.0.0.1'
  readonly port: number
  readonly #server: Server
  readonly #target: TcpTarget
  readonly #clock: Clock
  readonly #sockets = new Set<Socket>()
  #mode: Mode = { kind: 'pass' }
  /** Called when the mode has changed: what a black hole held moves on. */
  readonly #held = new Set<() => void>()

  /** Listens on a free port of 127.0.0.1 and passes everything to `target`. */
  static async start(target: TcpTarget, clock: Clock = systemClock): Promise<TcpProxy> {
    const server = createServer({ allowHalfOpen: true })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new TcpProxy(server, target, clock)
  }

  private constructor(server: Server, target: TcpTarget, clock: Clock) {
    this.#server = server
    this.#target = target
    this.#clock = clock
    this.port = (server.address() as AddressInfo).port
    server.on('connection', (client) => this.#accept(client))
  }

  /** Connections that are open now, from clients. */
  get connections(): number {
    return this.#sockets.size / 2
  }

  /** Everything goes through, also what a black hole held back. */
  pass(): void {
    this.#enter({ kind: 'pass' })
  }

  /** A partition: connections stay up, new ones are accepted, and no byte moves either way. */
  blackHole(): void {
    this.#enter({ kind: 'black-hole' })
  }

  /** Each byte takes `delayMs` longer, in each direction. */
  slow(delayMs: number): void {
    this.#enter({ kind: 'slow', delayMs })
  }

  /** Requests arrive, answers are lost. Leaving this mode resets every connection. */
  dropReplies(): void {
    this.#enter({ kind: 'drop-replies' })
  }

  /** Nobody listens: connections are reset, new ones at once. */
  refuse(): void {
    this.#enter({ kind: 'refuse' })
    this.reset()
  }

  /** Resets (RST) every connection that exists; the mode stays. */
  reset(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.refuse()
    await closed
  }

  #enter(mode: Mode): void {
    // A stream with a hole in it must not go on as if it had none.
    if (this.#mode.kind === 'drop-replies') this.reset()
    this.#mode = mode
    const held = [...this.#held]
    this.#held.clear()
    for (const release of held) release()
  }

  #accept(client: Socket): void {
    if (this.#mode.kind === 'refuse') {
      client.resetAndDestroy()
      return
    }
    const server = connect({ host: '127.0.0.1', allowHalfOpen: true, ...this.#target })
    this.#join(client, server, 'request')
    this.#join(server, client, 'reply')
  }

  #join(from: Socket, to: Socket, direction: Direction): void {
    this.#sockets.add(from)
    let queue: Promise<void> = Promise.resolve()
    let heldBytes = 0
    const later = (deliver: () => void): void => {
      const arrived = this.#clock.monotonicNanos()
      queue = queue.then(() => this.#delivered(arrived)).then(deliver)
    }
    from.setNoDelay(true)
    from.on('data', (chunk) => {
      heldBytes += chunk.length
      if (heldBytes > HELD_BYTES) from.pause()
      const gone = (): void => {
        heldBytes -= chunk.length
        if (heldBytes <= HELD_BYTES) from.resume()
      }
      later(() => {
        if (direction === 'reply' && this.#mode.kind === 'drop-replies') gone()
        else to.write(chunk, gone)
      })
    })
    from.on('end', () => later(() => to.end()))
    // A reset is passed on as one; it travels no slower and through no black hole.
    from.on('error', () => to.resetAndDestroy())
    from.on('close', () => this.#sockets.delete(from))
  }

  /** Resolves when what arrived at `arrived` may come out at the other end. */
  async #delivered(arrived: bigint): Promise<void> {
    while (this.#mode.kind === 'black-hole') {
      await new Promise<void>((resolve) => this.#held.add(resolve))
    }
    if (this.#mode.kind !== 'slow') return
    const passedMs = Number(this.#clock.monotonicNanos() - arrived) / 1e6
    const leftMs = this.#mode.delayMs - passedMs
    if (leftMs <= 0) return
    await new Promise<void>((resolve) => {
      this.#clock.setTimer(leftMs, resolve, { keepAlive: true })
    })
  }
}
