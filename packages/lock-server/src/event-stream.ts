import type { ServerResponse } from 'node:http'
import type { LockEngine, LockEvent } from '@dlock/engine'
import { Failure, formatTime, type WireEvent } from '@dlock/protocol'
import type { Clock, Timer } from '@dlock/system'
import { wireEventOf } from './wire-events.ts'

/** What one reader may leave unread before events are kept from it. */
const MAX_UNREAD_BYTES = 1_048_576
const MAX_READERS = 64
/** A comment this often keeps proxies from closing a quiet stream, and finds dead readers. */
const KEEP_ALIVE_MS = 15_000

/**
 * L10: the engine's events to everybody who listens. A reader that is too slow misses events, and
 * is told how many once it has caught up; one that reads nothing from one keep-alive to the next
 * is dropped. Neither costs the others anything.
 */
export class EventStream {
  readonly #clock: Clock
  readonly #readers = new Set<Reader>()
  readonly #stopListening: () => void
  #keepAlive: Timer | undefined
  #isClosed = false

  constructor(engine: LockEngine, clock: Clock) {
    this.#clock = clock
    this.#stopListening = engine.onEvent((event) => this.#tell(event))
  }

  /** Takes over `response` until its reader leaves. */
  open(response: ServerResponse): void {
    if (this.#isClosed) throw new Failure('NOT_LEADER', 'this server is shutting down; ask another')
    if (this.#readers.size >= MAX_READERS) {
      throw new Failure('CONTENTION_EXCEEDED', `${MAX_READERS} readers listen already`, {
        retryAfterMs: KEEP_ALIVE_MS,
      })
    }
    const reader = new Reader(response, this.#clock)
    this.#readers.add(reader)
    response.once('close', () => this.#readers.delete(reader))
    this.#keepAlive ??= this.#clock.setTimer(KEEP_ALIVE_MS, () => this.#beat())
  }

  /** Ends every stream; later ones are refused. */
  close(): void {
    this.#isClosed = true
    this.#stopListening()
    this.#keepAlive?.cancel()
    for (const reader of this.#readers) reader.end()
  }

  #tell(event: LockEvent): void {
    if (this.#readers.size === 0) return
    const told = wireEventOf(event)
    if (told === undefined) return
    const text = spelled(told)
    for (const reader of this.#readers) reader.write(text)
  }

  #beat(): void {
    for (const reader of this.#readers) reader.beat()
    this.#keepAlive =
      this.#readers.size === 0 ? undefined : this.#clock.setTimer(KEEP_ALIVE_MS, () => this.#beat())
  }
}

class Reader {
  readonly #response: ServerResponse
  readonly #clock: Clock
  #missed = 0
  #wasStuck = false

  constructor(response: ServerResponse, clock: Clock) {
    this.#response = response
    this.#clock = clock
    response.on('drain', () => this.#caughtUp())
    response.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
    })
    response.write(': listening\n\n')
  }

  write(text: string): void {
    if (this.#response.writableLength > MAX_UNREAD_BYTES) {
      this.#missed += 1
      return
    }
    this.#wasStuck = false
    this.#response.write(text)
  }

  beat(): void {
    if (this.#response.writableLength <= MAX_UNREAD_BYTES) this.write(': keep-alive\n\n')
    else if (this.#wasStuck) this.#response.destroy()
    else this.#wasStuck = true
  }

  end(): void {
    this.#response.end()
  }

  #caughtUp(): void {
    if (this.#missed === 0) return
    const gap: WireEvent = {
      type: 'gap',
      at: formatTime(this.#clock.now()),
      missed: this.#missed,
    }
    this.#missed = 0
    this.write(spelled(gap))
  }
}

/** JSON has no line breaks, so that one `data` line holds it. */
function spelled(event: WireEvent): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}
