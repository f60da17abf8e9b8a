/**
 * How requests, answers, errors and fencing tokens are spelled on the wire: the one description
 * that the server enforces, the client speaks, and the OpenAPI document is made of. No I/O.
 *
 * One table, `operations`, names every call with the schemas of its flat input and its output.
 * Plain HTTP spreads an input over path, headers and body (`toHttpRequest`); the multiplexed
 * connection puts it into a frame (`frames.ts`). One table, `errorTable`, gives each error code its
 * status and its retry verdict; `failureOf` and `errorOf` lead from the contract's errors to the
 * wire and back.
 *
 * Strictness: inputs are closed, nothing is coerced, defaulted or stripped, and every fault is
 * named. Outputs are open: a client ignores what it does not know.
 *
 * @packageDocumentation
 */
export { type ErrorCode, type ErrorRow, errorTable } from './error-codes.ts'
export { type ErrorDetails, type ErrorEnvelope, errorEnvelope } from './error-envelope.ts'
export * from './events.ts'
export {
  envelopeOf,
  errorOf,
  Failure,
  failureOf,
  fencedOutFailure,
  RemoteError,
} from './failures.ts'
export { FENCING_TOKEN_PATTERN, formatFencingToken, parseFencingToken } from './fencing-token.ts'
export * from './frames.ts'
export * from './headers.ts'
export { type HttpRequest, toHttpRequest } from './http-request.ts'
export * from './limits.ts'
export * from './listings.ts'
export type {
  AcquireInput,
  Done,
  FreeLock,
  HeldLock,
  InspectInput,
  LockGrant,
  LockView,
  ReleaseInput,
  Renewed,
  RenewInput,
  Revoked,
  RevokeInput,
} from './lock-messages.ts'
export {
  commonFailures,
  type InputOf,
  type Operation,
  type OperationName,
  type Operations,
  type OutputOf,
  operations,
} from './operations.ts'
export { decodePathSegment, encodePathSegment } from './path.ts'
export { type FieldFault, Schema } from './schema.ts'
export type {
  CloseSessionInput,
  Heartbeat,
  HeartbeatInput,
  LostGrant,
  OpenedSession,
  OpenSessionInput,
  Renewal,
} from './session-messages.ts'
export { formatTime, parseTime } from './time.ts'
export * from './token-counter.ts'
