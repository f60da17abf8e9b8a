import { nextTick } from 'node:process'
import { ContentionError } from '@dlock/lock-api'
import { type ClientFrame, MAX_CALLS_IN_FLIGHT, serverFrame } from '@dlock/protocol'
import type { Clock, Timer } from '@dlock/system'
import { answerWithin } from './answer-within.ts'
import type { WireAnswer, WireCall } from './channel.ts'
import { Deferred } from './deferred.ts'
import type { OpenSocket, Socket } from './socket.ts'

/** The calls of one turn share a message up to about this many characters. */
const MESSAGE_CHARACTERS = 262_144
/** After a call without an answer: how long the other side has for any sign of life. */
const SIGN_OF_LIFE_MS = 1_000
/** How long the other side has to say good-bye. */
const GOODBYE_MS = 500

export interface ConnectionParts {
  readonly url: URL
  readonly openSocket: OpenSocket
  readonly clock: Clock
  readonly connectTimeoutMs: number
  /** Once, when it is of no more use; also when it never opened. */
  readonly onClosed: () => void
}

/**
 * One multiplexed connection, from its opening to its end. Answers come in any order; the calls of
 * one turn of the event loop share a message. When it ends, each call in flight may or may not have
 * happened.
 *
 * It keeps the process alive while it opens and while calls are in flight, and not otherwise.
 */
export class Connection {
  readonly #opened = new Deferred<void>()
  readonly #closed = new Deferred<void>()
  readonly #clock: Clock
  readonly #socket: Socket
  readonly #inFlight = new Map<number, Deferred<WireAnswer>>()
  #lastId = 0
  #outbox: string[] = []
  #outboxCharacters = 0
  #isOpen = false
  #isHeard = false
  /** Runs while a silent other side is being asked whether it is there. */
  #probe: Timer | undefined
  #endedWith: ContentionError | undefined

  constructor({ url, openSocket, clock, connectTimeoutMs, onClosed }: ConnectionParts) {
    this.#clock = clock
    this.#socket = openSocket(url, {
      opened: () => {
        tooLong.cancel()
        this.#isOpen = true
        this.#keepAliveIfNeeded()
        this.#opened.resolve()
      },
      heard: () => this.#heard(),
      message: (text) => this.#receive(text),
      closed: (why) => {
        tooLong.cancel()
        onClosed()
        this.#opened.reject(this.#end(why))
        this.#closed.resolve()
      },
    })
    const terminate = (): void => this.#socket.terminate()
    const tooLong = clock.setTimer(connectTimeoutMs, terminate, { keepAlive: true })
  }

  /** Resolves when it is open; rejects with a `ContentionError` when it cannot be opened. */
  get opened(): Promise<void> {
    return this.#opened.promise
  }

  get isOpen(): boolean {
    return this.#isOpen && this.#endedWith === undefined
  }

  /**
   * Makes a call, once it is open.
   *
   * @throws ContentionError when there is no answer, or no room for the call
   */
  async call({ name, ownerId, input, hop, timeoutMs, signal }: WireCall): Promise<WireAnswer> {
    if (this.#endedWith !== undefined) throw this.#endedWith
    if (this.#inFlight.size >= MAX_CALLS_IN_FLIGHT) throw noRoom()
    const id = ++this.#lastId
    const answer = new Deferred<WireAnswer>()
    this.#inFlight.set(id, answer)
    if (this.#inFlight.size === 1) this.#keepAliveIfNeeded()
    this.#post({ id, op: name, in: input, ...(ownerId !== undefined && { owner: ownerId }) })
    const cancel = (): void => this.#post({ id, cancel: true })
    const patience = {
      clock: this.#clock,
      timeoutMs,
      keepAlive: hop.awaited,
      giveUp: signal && { signal, graceMs: hop.readMs, onAbort: cancel },
    }
    this.#isHeard = false
    return answerWithin(answer.promise, patience, () => {
      cancel()
      this.#settled(id)
      if (!this.#isHeard) this.#askForSignOfLife()
    })
  }

  /** Calls in flight end with a `ContentionError`. Bounded. */
  async close(): Promise<void> {
    this.#end('the client closed it')
    if (this.#isOpen) this.#socket.close()
    else this.#socket.terminate()
    const timer = this.#clock.setTimer(GOODBYE_MS, () => this.#socket.terminate(), {
      keepAlive: true,
    })
    await this.#closed.promise
    timer.cancel()
  }

  #post(frame: ClientFrame): void {
    if (this.#endedWith !== undefined) return
    // After everything that runs in this turn: the next-tick queue comes when no promise is left.
    if (this.#outbox.length === 0) nextTick(() => this.#flush())
    const text = JSON.stringify(frame)
    this.#outbox.push(text)
    this.#outboxCharacters += text.length
    if (this.#outboxCharacters > MESSAGE_CHARACTERS) this.#flush()
  }

  #flush(): void {
    if (this.#outbox.length === 0 || this.#endedWith !== undefined) return
    const message = `[${this.#outbox.join(',')}]`
    this.#outbox = []
    this.#outboxCharacters = 0
    this.#socket.send(message)
  }

  #receive(text: string): void {
    const frames = parsed(text)
    if (!Array.isArray(frames)) return this.#socket.terminate()
    for (const frame of frames as unknown[]) {
      if (!serverFrame.accepts(frame)) return this.#socket.terminate()
      const call = this.#inFlight.get(frame.id)
      this.#settled(frame.id)
      call?.resolve(frame)
    }
  }

  #settled(id: number): void {
    if (this.#inFlight.delete(id) && this.#inFlight.size === 0) this.#keepAliveIfNeeded()
  }

  #keepAliveIfNeeded(): void {
    if (this.#isOpen) this.#socket.keepAlive(this.#inFlight.size > 0)
  }

  /** A connection whose other side vanished looks open for many minutes. */
  #askForSignOfLife(): void {
    if (this.#probe !== undefined || this.#endedWith !== undefined) return
    this.#socket.ping()
    this.#probe = this.#clock.setTimer(SIGN_OF_LIFE_MS, () => this.#socket.terminate())
  }

  #heard(): void {
    this.#isHeard = true
    this.#probe?.cancel()
    this.#probe = undefined
  }

  #end(why: string): ContentionError {
    this.#probe?.cancel()
    this.#endedWith ??= new ContentionError(
      `no connection to the server (${why}): what was sent on it may have happened`,
    )
    const inFlight = [...this.#inFlight.values()]
    this.#inFlight.clear()
    for (const answer of inFlight) answer.reject(this.#endedWith)
    return this.#endedWith
  }
}

function noRoom(): ContentionError {
  const message = `at most ${MAX_CALLS_IN_FLIGHT} calls of one connection may be in flight`
  return new ContentionError(message, { retryAfterMs: 100 })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
