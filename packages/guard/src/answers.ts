import type { Refused } from './fencing-token.ts'

/**
 * The guard's refusals as HTTP answers: a status and the error envelope that every service of dlock
 * answers with (`@dlock/protocol` owns its schema; this package may depend on `lock-api` only, so a
 * test compares the two).
 */
export interface Answer {
  readonly status: number
  readonly body: AnswerBody
}

/** The error envelope, as far as a guard fills it in. */
export interface AnswerBody {
  readonly code: GuardCode
  /** For people. */
  readonly message: string
  /** Whether the identical request may be sent again without risking a duplicate effect. */
  readonly retrySafe: boolean
  readonly details?: Readonly<Record<string, unknown>>
  /** 32 hexadecimal digits: the trace that the guard's log lines carry. */
  readonly traceId: string
}

/** A code of `guardCodes`. */
export type GuardCode = keyof typeof guardCodes

/** What a guard can answer, and whether the same request may be repeated. */
export const guardCodes = {
  INVALID_TOKEN: { status: 400, retrySafe: false },
  VALIDATION_FAILED: { status: 400, retrySafe: false },
  NOT_FOUND: { status: 404, retrySafe: false },
  BODY_TOO_LARGE: { status: 413, retrySafe: false },
  FENCED_OUT: { status: 409, retrySafe: false },
  DUPLICATE_SUBMISSION: { status: 409, retrySafe: false },
  RAIL_UNAVAILABLE: { status: 503, retrySafe: true },
  RAIL_AMBIGUOUS: { status: 409, retrySafe: false },
  STORE_UNAVAILABLE: { status: 503, retrySafe: true },
  INTERNAL: { status: 500, retrySafe: false },
} as const

export function answer(
  code: GuardCode,
  message: string,
  traceId: string,
  details?: Readonly<Record<string, unknown>>,
): Answer {
  const { status, retrySafe } = guardCodes[code]
  const body = { code, message, retrySafe, traceId, ...(details === undefined ? {} : { details }) }
  return { status, body }
}

/** Which resource refused, for the answer and the log: `('account', 'acc-17')`. */
export interface GuardedResource {
  readonly resourceType: string
  readonly resourceId: string
}

/** The `details` of a `FENCED_OUT` answer: both tokens, the resource and who asked (FR-16). */
export interface FencedOutDetails extends GuardedResource {
  readonly presentedToken: string
  readonly highestToken: string
  readonly ownerId: string
}

/** The refusal as a `FENCED_OUT` answer and its log line tell it; tokens as decimal strings. */
export function fencedOutDetails(
  refused: Refused,
  resource: GuardedResource,
  ownerId: string,
): FencedOutDetails {
  return {
    presentedToken: refused.presentedToken.toString(),
    highestToken: refused.storedToken.toString(),
    resourceType: resource.resourceType,
    resourceId: resource.resourceId,
    ownerId,
  }
}

/** 409 `FENCED_OUT`, never to be retried: whoever presented the token has been superseded. */
export function fencedOutAnswer(
  refused: Refused,
  resource: GuardedResource,
  ownerId: string,
  traceId: string,
): Answer {
  return answer(
    'FENCED_OUT',
    `token ${refused.presentedToken} is fenced out: ${resource.resourceType} has accepted ${refused.storedToken}`,
    traceId,
    { ...fencedOutDetails(refused, resource, ownerId) },
  )
}
