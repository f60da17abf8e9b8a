import type { LockEngine } from '@dlock/engine'
import {
  Failure,
  type Listings,
  type Operation,
  type Operations,
  type TokenCounterOperations,
} from '@dlock/protocol'
import type { Clock } from '@dlock/system'
import type { Logger } from 'pino'
import type { CallContext } from './call.ts'
import type { Role } from './identity.ts'
import { type LogEventName, logEvent } from './log.ts'

/** Everything the server answers: the eight calls, the three lists, and the token counter. */
export type CallTable = Operations & Listings & TokenCounterOperations
export type CallName = keyof CallTable

/** What one call does. It throws a failure; it never catches one. */
export interface Handler<Input, Output> {
  readonly role: Role
  /** The name of its span, for the calls that have one. */
  readonly span?: string
  answer(context: CallContext, input: Input): Promise<Output>
}

export type Handlers<Names extends CallName = CallName> = {
  readonly [Name in Names]: CallTable[Name] extends Operation<infer Input, infer Output>
    ? Handler<Input, Output>
    : never
}

/** What handlers work with. */
export interface Desk {
  readonly engine: LockEngine
  readonly clock: Clock
  readonly log: Logger
  readonly leases: Leases
  /** Once it is shutting down, the server grants nothing: another one can. */
  isClosing(): boolean
}

/** The leases that are given when none is asked for, and the longest. Milliseconds. */
export interface Leases {
  readonly defaultSessionTtlMs: number
  readonly defaultLockTtlMs: number
  readonly maxLockTtlMs: number
}

/**
 * Refuses a caller that is not the session's owner. Whether the session lives is for the store to
 * say, in the call itself: not every store can describe one to a process that did not open it.
 */
export async function checkOwner(
  { engine }: Desk,
  { ownerId }: CallContext,
  sessionId: string,
): Promise<void> {
  const session = await engine.describeSession(sessionId)
  if (session.state === 'live' && session.ownerId !== ownerId) throw notYours('session')
}

export function notYours(what: 'session' | 'grant'): Failure {
  return new Failure('FORBIDDEN', `the ${what} belongs to another owner than the caller`)
}

export function shuttingDown(): Failure {
  return new Failure('NOT_LEADER', 'this server is shutting down; ask another')
}

/** Logs what a call did, under the call's trace. */
export function note({ log }: Desk, context: CallContext, event: LogEventName, what: object): void {
  const { traceId, spanId } = context.trace
  logEvent(log, event, { traceId, spanId, ownerId: context.ownerId, ...what })
}
