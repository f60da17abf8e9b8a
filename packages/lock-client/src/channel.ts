import type { AbortSignalLike } from '@dlock/lock-api'
import type { ErrorEnvelope, OperationName } from '@dlock/protocol'
import type { Clock } from '@dlock/system'
import { toMs } from './deadline.ts'
import type { Hop } from './hops.ts'

/**
 * A road to a server: takes a call as `@dlock/protocol` spells it and brings its answer, whatever
 * that says. It knows no operation by name.
 */
export interface Channel {
  /**
   * @returns the answer, not checked against any schema yet
   * @throws ContentionError when there is none within the call's time: the call may or may not have
   *   happened, and is not made again in here
   */
  call(call: WireCall): Promise<WireAnswer>
  /** Idempotent and bounded. Calls in flight end with a `ContentionError`. */
  close(): Promise<void>
}

export interface WireCall {
  readonly name: OperationName
  readonly ownerId: string | undefined
  readonly input: object
  readonly hop: Hop
  /** For the answer, all in all; the connection, made within `hop.connectMs`, is part of it. */
  readonly timeoutMs: number
  /** The caller gives up. The answer, if there is still one, is brought all the same. */
  readonly signal?: AbortSignalLike
}

export type WireAnswer = { readonly out: unknown } | { readonly error: ErrorEnvelope }

/** What is left of `call` when the way to it has taken since `beganAt`, a monotonic reading. */
export function shortenedBy(call: WireCall, clock: Clock, beganAt: bigint): WireCall {
  const tookMs = toMs(clock.monotonicNanos() - beganAt)
  return { ...call, timeoutMs: Math.max(call.timeoutMs - tookMs, 0) }
}
