import {
  ContentionError,
  FencedOutError,
  NotLeaderError,
  SessionDeadError,
  TerminalLockError,
} from '@dlock/lock-api'
import { type ErrorCode, errorTable } from './error-codes.ts'
import type { ErrorDetails, ErrorEnvelope } from './error-envelope.ts'
import { formatFencingToken, parseFencingToken } from './fencing-token.ts'
import type { FieldFault } from './schema.ts'

/** What a service throws to answer with a code of the table. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly code: ErrorCode
  readonly details: ErrorDetails | undefined
  readonly retryAfterMs: number | undefined

  constructor(
    code: ErrorCode,
    message: string,
    options: {
      readonly details?: ErrorDetails | undefined
      readonly retryAfterMs?: number | undefined
    } = {},
  ) {
    super(message)
    this.code = code
    this.details = options.details
    this.retryAfterMs = options.retryAfterMs
  }
}

/**
 * What a client throws for an answer that has no type of its own in the contract: it was not let
 * in, asked for what is not there, or met a bug of the server's. Not to be repeated as it is.
 */
export class RemoteError extends TerminalLockError {
  override readonly name = 'RemoteError'
  readonly code: ErrorCode
  readonly status: number
  /** Finds the server's log lines about the call. */
  readonly traceId: string

  constructor(code: ErrorCode, status: number, traceId: string, message: string) {
    super(`${code}: ${message} (trace ${traceId})`)
    this.code = code
    this.status = status
    this.traceId = traceId
  }
}

/**
 * The failure that `error` is on the wire. A `ContentionError` that says when to come back is a
 * queue that is full; one that does not is a store that could not decide. What is no failure of
 * the contract is a bug, and its words stay in the log.
 */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error
  if (error instanceof ContentionError) {
    const { message, retryAfterMs } = error
    const code = retryAfterMs === undefined ? 'STORE_UNAVAILABLE' : 'CONTENTION_EXCEEDED'
    return new Failure(code, message, { retryAfterMs })
  }
  if (error instanceof NotLeaderError) {
    return new Failure('NOT_LEADER', error.message, { retryAfterMs: error.retryAfterMs })
  }
  if (error instanceof SessionDeadError) {
    const code = error.state === 'expired' ? 'SESSION_EXPIRED' : 'SESSION_UNKNOWN'
    return new Failure(code, error.message)
  }
  return new Failure('INTERNAL', 'the server failed; its log has more under this trace id')
}

/** `failure` as it is answered. `repeatable` is the operation's. */
export function envelopeOf(
  failure: Failure,
  call: { readonly traceId: string; readonly repeatable: boolean },
): ErrorEnvelope {
  const { retrySafe } = errorTable[failure.code]
  return {
    code: failure.code,
    message: failure.message,
    retrySafe: retrySafe === 'if-repeatable' ? call.repeatable : retrySafe,
    ...(failure.retryAfterMs !== undefined && {
      retryAfterMillis: Math.ceil(failure.retryAfterMs),
    }),
    ...(failure.details !== undefined && { details: failure.details }),
    traceId: call.traceId,
  }
}

/**
 * The error of the contract that an answer means. `LOCK_CONTENDED` and `LOCK_LOST` are values
 * there (`undefined`, `false`), so a caller looks for these two codes first; what it leaves here
 * becomes a `RemoteError`.
 */
export function errorOf(envelope: ErrorEnvelope): Error {
  const { code, message, traceId } = envelope
  const known = contractErrors[code]?.(envelope)
  return known ?? new RemoteError(code, errorTable[code].status, traceId, message)
}

const contractErrors: Partial<Record<ErrorCode, (envelope: ErrorEnvelope) => Error | undefined>> = {
  CONTENTION_EXCEEDED: contention,
  STORE_UNAVAILABLE: contention,
  NOT_LEADER: (envelope) => new NotLeaderError(envelope.message, retryOf(envelope)),
  SESSION_UNKNOWN: () => new SessionDeadError('unknown'),
  SESSION_EXPIRED: () => new SessionDeadError('expired'),
  VALIDATION_FAILED: (envelope) => new RangeError(withFields(envelope)),
  INVALID_TOKEN: (envelope) => new RangeError(withFields(envelope)),
  FENCED_OUT: fencedOut,
}

function contention(envelope: ErrorEnvelope): Error {
  return new ContentionError(envelope.message, retryOf(envelope))
}

function retryOf(envelope: ErrorEnvelope): { retryAfterMs: number | undefined } {
  return { retryAfterMs: envelope.retryAfterMillis }
}

/** The answer to a token that a guard, or a revocation's `expectedToken`, refused. */
export function fencedOutFailure(
  error: FencedOutError,
  resource: { readonly type: string; readonly id: string; readonly ownerId: string },
): Failure {
  return new Failure('FENCED_OUT', error.message, {
    details: {
      presentedToken: formatFencingToken(error.presentedToken),
      highestToken: formatFencingToken(error.storedToken),
      resourceType: resource.type,
      resourceId: resource.id,
      ownerId: resource.ownerId,
    },
  })
}

function fencedOut({ details }: ErrorEnvelope): FencedOutError | undefined {
  const key = details?.['resourceId']
  const presented = parseFencingToken(String(details?.['presentedToken']))
  const highest = parseFencingToken(String(details?.['highestToken']))
  if (typeof key !== 'string' || presented === undefined || highest === undefined) return undefined
  return new FencedOutError(key, presented, highest)
}

function withFields({ message, details }: ErrorEnvelope): string {
  const fields = details?.['fields']
  if (!Array.isArray(fields) || fields.length === 0) return message
  const said = (fields as FieldFault[]).map((fault) => `${fault.field} ${fault.message}`)
  return `${message}: ${said.join('; ')}`
}
