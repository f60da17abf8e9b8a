/**
 * What a resource holds. A lock service can order grants, but only the resource can refuse a late
 * write of a holder that was paused past its lease: it remembers the highest fencing token it has
 * seen and refuses older ones. A guard trusts nobody, the lock service included; it compares
 * integers, atomically with the write it protects.
 *
 * Four ways in, from the inside out:
 *
 * - rules as pure functions (`admits`, `continues`, `permits`), for a resource with its own memory;
 * - checks in PostgreSQL, on the caller's client in the caller's transaction (`admit` and its like);
 * - HTTP: the strict reading of `X-Fencing-Token`, middleware, the `FENCED_OUT` answer;
 * - a proxy in front of a system that cannot compare tokens (`ForwardOnce`, `fencingProxy`, and the
 *   program `fencing-proxy`).
 *
 * What a guard does not promise: that a refused holder did nothing elsewhere. Every resource that a
 * holder writes to needs a guard of its own, with a memory of its own.
 *
 * @packageDocumentation
 */
export {
  type Answer,
  type AnswerBody,
  type FencedOutDetails,
  fencedOutAnswer,
  fencedOutDetails,
  type GuardCode,
  type GuardedResource,
  guardCodes,
} from './answers.ts'
export { ATTEMPT_TABLE, type Attempt, type AttemptOutcome } from './attempt.ts'
export {
  admits,
  advance,
  checkFloor,
  continues,
  type FencingRule,
  type Passed,
  permits,
  type Refused,
  type Verdict,
} from './fencing-token.ts'
export {
  type Forwarded,
  ForwardOnce,
  type ForwardOnceOptions,
  type Submission,
  type Submitted,
} from './forward-once.ts'
export {
  type FastifyReplyShape,
  type FastifyShape,
  type FencingTokenPlugin,
  fencingTokenPlugin,
  type GuardedRequest,
  type PlainResponse,
  requireFencingToken,
  sendAnswer,
} from './middleware.ts'
export {
  inTransaction,
  type PooledClient,
  type PostgresClient,
  type PostgresPool,
} from './postgres-client.ts'
export {
  admit,
  admitOrThrow,
  advanceFence,
  continueGrant,
  continueGrantOrThrow,
  FENCE_TABLE,
  fencedOut,
  permit,
  permitOrThrow,
  readFence,
} from './postgres-fence.ts'
export {
  type Presentation,
  type PresentationLimits,
  type Presented,
  presentOnce,
  type Reply,
} from './present-once.ts'
export {
  fencingTokenOf,
  type Headers,
  InvalidFencingTokenError,
  invalidTokenAnswer,
  traceIdOf,
} from './token-header.ts'
