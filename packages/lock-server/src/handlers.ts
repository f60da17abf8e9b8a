import type { LockEngine } from '@dlock/engine'
import {
  Failure,
  type Listings,
  MIN_SESSION_TTL_MS,
  type Operation,
  type Operations,
  type TokenCounterOperations,
} from '@dlock/protocol'
import type { Clock } from '@dlock/system'
import type { Logger } from 'pino'
import type { CallContext } from './call.ts'
import type { Role } from './identity.ts'
import { invalid } from './invalid.ts'
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

/** The leases that are given when none is asked for, and the longest of both. Milliseconds. */
export interface Leases {
  readonly defaultSessionTtlMs: number
  readonly defaultLockTtlMs: number
  readonly maxLockTtlMs: number
}

/** The lease to ask the engine for. */
export function lockTtlMs(
  { leases }: Desk,
  ttlMillis: number | undefined,
  field: string = 'ttlMillis',
): number {
  return checkedTtlMs(leases, ttlMillis ?? leases.defaultLockTtlMs, 1, field)
}

/** A session may be given no longer a lease than a lock. */
export function sessionTtlMs({ leases }: Desk, ttlMillis: number): number {
  return checkedTtlMs(leases, ttlMillis, MIN_SESSION_TTL_MS, 'ttlMillis')
}

/** The schema knows what any server allows; this one may allow less. */
function checkedTtlMs(leases: Leases, ttlMs: number, min: number, field: string): number {
  if (ttlMs <= leases.maxLockTtlMs) return ttlMs
  throw invalid([{ field, message: `must be from ${min} to ${leases.maxLockTtlMs}, got ${ttlMs}` }])
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
