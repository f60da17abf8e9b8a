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

/** One call in flight. The adapter that made it abandons it when its caller goes away. */
export class Call {
  readonly spelled: SpelledCall
  /** Set by a handler that waits for somebody else's lock. */
  isWaiting = false
  #abandoned: Failure | undefined
  #controller: AbortController | undefined

  constructor(spelled: SpelledCall) {
    this.spelled = spelled
  }

  /**
   * Aborts when the caller is gone; its reason is the failure that ends the call. Made only when
   * asked for: most calls are over before anybody could leave.
   */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#abandoned !== undefined) this.#controller.abort(this.#abandoned)
    }
    return this.#controller.signal
  }

  /** Ends the wait, if there is one. Without effect on a call that is over. */
  abandon(why: Failure): void {
    this.#abandoned ??= why
    this.#controller?.abort(this.#abandoned)
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
