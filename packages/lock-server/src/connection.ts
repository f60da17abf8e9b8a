import {
  type CallFrame,
  callFrame,
  cancelFrame,
  type ErrorEnvelope,
  Failure,
  MAX_CALLS_IN_FLIGHT,
  MAX_WAITS_IN_FLIGHT,
} from '@dlock/protocol'
import type { Clock, Timer } from '@dlock/system'
import type { RawData, WebSocket } from 'ws'
import { Call, callerGone } from './call.ts'
import type { Calls } from './calls.ts'
import type { Identity } from './identity.ts'
import { invalid } from './invalid.ts'

/** A peer that says nothing from one ping to the next is gone. */
const PING_EVERY_MS = 15_000
/** Above this much unsent, no more calls are read until the client has read. */
const MAX_UNREAD_BYTES = 1_048_576
/** Answers of one turn share a message up to about this many characters. */
const MESSAGE_CHARACTERS = 262_144

/** Close codes of RFC 6455. */
const CLOSE = { goingAway: 1001, unsupported: 1003, policy: 1008 } as const

/**
 * One multiplexed connection: frames in, answers out, in whatever order they are ready.
 *
 * Bounded both ways: at most `MAX_CALLS_IN_FLIGHT` calls are in flight, and while the client leaves
 * more than `MAX_UNREAD_BYTES` unread, nothing is read from it.
 */
export class Connection {
  readonly #socket: WebSocket
  readonly #calls: Calls
  readonly #identity: Identity
  readonly #clock: Clock
  readonly #inFlight = new Map<number, Call>()
  #waits = 0
  #lastId = 0
  #answers: string[] = []
  #answersLength = 0
  #isDraining = false
  #isHeard = true
  #ping: Timer

  constructor(socket: WebSocket, calls: Calls, identity: Identity, clock: Clock) {
    this.#socket = socket
    this.#calls = calls
    this.#identity = identity
    this.#clock = clock
    this.#ping = clock.setTimer(PING_EVERY_MS, () => this.#checkPeer())
    socket.on('message', (data, isBinary) => this.#receive(data, isBinary))
    socket.on('pong', () => {
      this.#isHeard = true
    })
    socket.on('close', () => this.#gone())
    socket.on('error', () => {}) // 'close' follows, and is all there is to know
  }

  /** Closes once no call is in flight. */
  drain(): void {
    this.#isDraining = true
    this.#closeWhenDrained()
  }

  terminate(): void {
    this.#socket.terminate()
  }

  #receive(data: RawData, isBinary: boolean): void {
    this.#isHeard = true
    // What arrives after the connection was closed could not be answered, so it must not be done.
    if (this.#socket.readyState !== this.#socket.OPEN) return
    if (isBinary) return this.#socket.close(CLOSE.unsupported, 'frames are text')
    const frames = parsed(data)
    if (!Array.isArray(frames)) {
      this.#refuseMessage('not a JSON array of frames')
      return
    }
    for (const frame of frames as unknown[]) {
      if (!this.#take(frame)) return
    }
  }

  /** @returns false when the frame was such that the connection is closed */
  #take(frame: unknown): boolean {
    if (cancelFrame.accepts(frame)) {
      const why = new Failure('LOCK_CONTENDED', 'the caller gave up its wait')
      this.#inFlight.get(frame.id)?.abandon(why)
      return true
    }
    const id = idOf(frame)
    if (id === undefined) return this.#refuseMessage('a frame without an id')
    if (id <= this.#lastId) return this.#refuseMessage('ids must increase')
    this.#lastId = id
    if (callFrame.accepts(frame)) this.#start(frame)
    else this.#fail(id, this.#calls.refuse(invalid(callFrame.faults(frame)), undefined))
    return true
  }

  #start({ id, op, owner, traceparent, in: input }: CallFrame): void {
    const isWait = op === 'acquire' && asksToWait(input)
    const room = isWait
      ? this.#waits < MAX_WAITS_IN_FLIGHT && this.#inFlight.size < MAX_CALLS_IN_FLIGHT
      : this.#inFlight.size < MAX_CALLS_IN_FLIGHT
    if (!room) return this.#fail(id, this.#calls.refuse(noRoom(), traceparent))
    const call = new Call({ input, ownerId: owner, traceparent, identity: this.#identity })
    this.#inFlight.set(id, call)
    if (isWait) this.#waits += 1
    void this.#calls.run(op, call).then((outcome) => {
      this.#inFlight.delete(id)
      if (isWait) this.#waits -= 1
      if (outcome.ok) this.#answer(`{"id":${id},"out":${JSON.stringify(outcome.output)}}`)
      else this.#fail(id, outcome.envelope)
      if (this.#isDraining) this.#closeWhenDrained()
    })
  }

  #fail(id: number, envelope: ErrorEnvelope): void {
    this.#answer(`{"id":${id},"error":${JSON.stringify(envelope)}}`)
  }

  /** What is ready in one turn of the event loop shares a message: a system call, not a hundred. */
  #answer(frame: string): void {
    // After everything that is ready now: the next-tick queue runs when no promise is left to.
    if (this.#answers.length === 0) process.nextTick(() => this.#flush())
    this.#answers.push(frame)
    this.#answersLength += frame.length
    if (this.#answersLength > MESSAGE_CHARACTERS) this.#flush()
  }

  #flush(): void {
    if (this.#answers.length === 0) return
    const message = `[${this.#answers.join(',')}]`
    this.#answers = []
    this.#answersLength = 0
    const socket = this.#socket
    if (socket.readyState !== socket.OPEN) return
    socket.send(message, () => this.#sent())
    if (socket.bufferedAmount > MAX_UNREAD_BYTES) socket.pause()
  }

  #sent(): void {
    if (this.#socket.isPaused && this.#socket.bufferedAmount <= MAX_UNREAD_BYTES / 2) {
      this.#socket.resume()
    }
  }

  #closeWhenDrained(): void {
    if (this.#inFlight.size > 0) return
    this.#flush()
    this.#socket.close(CLOSE.goingAway, 'shutting down')
  }

  #refuseMessage(why: string): false {
    this.#socket.close(CLOSE.policy, why)
    return false
  }

  #checkPeer(): void {
    if (!this.#isHeard) return this.#socket.terminate()
    this.#isHeard = false
    this.#socket.ping()
    this.#ping = this.#clock.setTimer(PING_EVERY_MS, () => this.#checkPeer())
  }

  /** As if each caller had gone away. */
  #gone(): void {
    this.#ping.cancel()
    for (const call of this.#inFlight.values()) call.abandon(callerGone())
  }
}

function parsed(data: RawData): unknown {
  try {
    return JSON.parse((data as Buffer).toString()) as unknown
  } catch {
    return undefined
  }
}

function idOf(frame: unknown): number | undefined {
  const id = (frame as { id?: unknown } | null)?.id
  return Number.isSafeInteger(id) && (id as number) > 0 ? (id as number) : undefined
}

function asksToWait(input: unknown): boolean {
  const waitMillis = (input as { waitMillis?: unknown } | null)?.waitMillis
  return waitMillis !== undefined && waitMillis !== 0
}

function noRoom(): Failure {
  return new Failure(
    'CONTENTION_EXCEEDED',
    `at most ${MAX_CALLS_IN_FLIGHT} calls of one connection, ${MAX_WAITS_IN_FLIGHT} of them waits, may be in flight`,
    { retryAfterMs: 100 },
  )
}
