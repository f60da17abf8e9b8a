/**
 * Every failure that any service of dlock answers with, once. `retrySafe` says whether the
 * identical request may be sent again without risking a duplicate effect or lost exclusion; it does
 * not say whether the error was transient. `'if-repeatable'` leaves it to the operation: repeating
 * an acquire gives the same grant, repeating a revocation may hit the next holder.
 */
export const errorTable: Readonly<Record<ErrorCode, ErrorRow>> = {
  LOCK_CONTENDED: { status: 409, retrySafe: true },
  CONTENTION_EXCEEDED: { status: 429, retrySafe: true },
  NOT_LEADER: { status: 503, retrySafe: true },
  STORE_UNAVAILABLE: { status: 503, retrySafe: 'if-repeatable' },
  LOCK_LOST: { status: 409, retrySafe: false },
  SESSION_UNKNOWN: { status: 404, retrySafe: false },
  SESSION_EXPIRED: { status: 410, retrySafe: false },
  INVALID_TOKEN: { status: 400, retrySafe: false },
  VALIDATION_FAILED: { status: 400, retrySafe: false },
  UNAUTHENTICATED: { status: 401, retrySafe: false },
  FORBIDDEN: { status: 403, retrySafe: false },
  NOT_FOUND: { status: 404, retrySafe: false },
  FENCED_OUT: { status: 409, retrySafe: false },

  // HTTP's own refusals, before any operation was found.
  METHOD_NOT_ALLOWED: { status: 405, retrySafe: false },
  REQUEST_TIMEOUT: { status: 408, retrySafe: false },
  BODY_TOO_LARGE: { status: 413, retrySafe: false },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, retrySafe: false },
  UPGRADE_REQUIRED: { status: 426, retrySafe: false },
  HEADERS_TOO_LARGE: { status: 431, retrySafe: false },

  // Payouts.
  PAYOUT_NOT_CLAIMABLE: { status: 409, retrySafe: false },
  DUPLICATE_SUBMISSION: { status: 409, retrySafe: false },
  INSUFFICIENT_FUNDS: { status: 422, retrySafe: false },
  IDEMPOTENCY_CONFLICT: { status: 422, retrySafe: false },
  RAIL_REJECTED: { status: 422, retrySafe: false },
  RAIL_UNAVAILABLE: { status: 503, retrySafe: true },
  RAIL_AMBIGUOUS: { status: 409, retrySafe: false },

  INTERNAL: { status: 500, retrySafe: false },
}

/** A code's HTTP status and its retry verdict. */
export interface ErrorRow {
  readonly status: number
  readonly retrySafe: boolean | 'if-repeatable'
}

/** The name of a failure. Stable: programs decide by it. */
export type ErrorCode =
  | 'LOCK_CONTENDED'
  | 'CONTENTION_EXCEEDED'
  | 'NOT_LEADER'
  | 'STORE_UNAVAILABLE'
  | 'LOCK_LOST'
  | 'SESSION_UNKNOWN'
  | 'SESSION_EXPIRED'
  | 'INVALID_TOKEN'
  | 'VALIDATION_FAILED'
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'NOT_FOUND'
  | 'FENCED_OUT'
  | 'METHOD_NOT_ALLOWED'
  | 'REQUEST_TIMEOUT'
  | 'BODY_TOO_LARGE'
  | 'UNSUPPORTED_MEDIA_TYPE'
  | 'UPGRADE_REQUIRED'
  | 'HEADERS_TOO_LARGE'
  | 'PAYOUT_NOT_CLAIMABLE'
  | 'DUPLICATE_SUBMISSION'
  | 'INSUFFICIENT_FUNDS'
  | 'IDEMPOTENCY_CONFLICT'
  | 'RAIL_REJECTED'
  | 'RAIL_UNAVAILABLE'
  | 'RAIL_AMBIGUOUS'
  | 'INTERNAL'
