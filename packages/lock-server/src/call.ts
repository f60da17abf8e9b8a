import type { AbortSignalLike } from '@dlock/lock-api'
import { Failure } from '@dlock/protocol'
import type { Identity } from './identity.ts'
import type { Trace } from './tracing.ts'

/** A call as an adapter read it off the wire: spelled, not yet checked. */
export interface SpelledCall {
  readonly input: unknown
  readonly ownerId: string | undefined
  readonly traceparent: string | undefined
  readonly identity: Identity
}

/**
 * One call in flight. The adapter that made it abandons it when its caller goes away.
 *
 * It is its own abort signal: an `AbortController` for each, which hardly any call uses, adds a
 * third to what an uncontended acquire and release cost the engine.
 */
export class Call implements AbortSignalLike {
  readonly spelled: SpelledCall
  /** Set by a handler that waits for somebody else's lock. */
  isWaiting = false
  /** The failure that ends the call; `undefined` until it is abandoned. */
  reason: Failure | undefined
  #listeners: Set<() => void> | undefined

  constructor(spelled: SpelledCall) {
    this.spelled = spelled
  }

  /** Ends the wait, if there is one. Without effect on a call that is over, or abandoned before. */
  abandon(why: Failure): void {
    if (this.reason !== undefined) return
    this.reason = why
    const listeners = this.#listeners ?? []
    this.#listeners = undefined
    for (const listener of listeners) listener()
  }

  get aborted(): boolean {
    return this.reason !== undefined
  }

  throwIfAborted(): void {
    if (this.reason !== undefined) throw this.reason
  }

  /** Each listener is called once at most: there is only one abandoning. */
  addEventListener(_: 'abort', listener: () => void): void {
    if (this.reason !== undefined) return
    this.#listeners ??= new Set()
    this.#listeners.add(listener)
  }

  removeEventListener(_: 'abort', listener: () => void): void {
    this.#listeners?.delete(listener)
  }
}

/** Why a call ends whose caller disconnected; nobody is left to read it. */
export function callerGone(): Failure {
  return new Failure('LOCK_CONTENDED', 'the caller went away')
}

/** What a handler gets besides its input, all of it checked. */
export interface CallContext {
  readonly call: Call
  /** The caller's name; on reads, which need none, perhaps "". */
  readonly ownerId: string
  readonly identity: Identity
  readonly trace: Trace
}
