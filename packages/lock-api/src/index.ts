/**
 * The nouns and the contracts of dlock, and nothing else: no dependency, no I/O, no driver's or
 * framework's type, no log line. Everything here is compiled against plain ECMAScript.
 *
 * Glossary, and the only words used: **grant**, the answer to a successful acquire · **handle**,
 * its proof in the client · **lease**, a grant with an expiry · **session**, a client's liveness
 * relation with the service · **fencing token**, the number that orders the grants of a key ·
 * **fence**, the highest token a guard has accepted for a resource · **guard**, a process that
 * checks tokens for a resource it owns and does not trust the lock service · **fenced out**,
 * rejected by a guard · **admission**, a grant's first protected write · **floor**, the number
 * that every later token is above, after a revocation · **ambiguous**, an outcome that is unknown
 * and cannot be learnt locally.
 *
 * Three rules hold everywhere. Absence is `undefined`; `null` never crosses the API. A duration is
 * whole milliseconds and ends in `Ms`, a monotonic instant is a `bigint` and ends in `Nanos`, a
 * wall-clock instant is a `Date` and is for display only. A token travels as an explicit argument
 * or in the `X-Fencing-Token` header, never in a global, an `AsyncLocalStorage` or a request scope.
 *
 * @packageDocumentation
 */
export type { AbortSignalLike } from './abort-signal.ts'
export {
  type AuditCapability,
  type AuditedRevocation,
  type CapableStore,
  capabilitiesOf,
  grantedTtlMs,
  type HealthCapability,
  type ListingCapability,
  type LockQuery,
  type NextHolder,
  type Page,
  type PageQuery,
  type QueueCapability,
  type Revocation,
  type SessionCapability,
  type SessionInfo,
  type SessionState,
  type StoreCapabilities,
  type TokenCapability,
  type Transfer,
  type TransferCapability,
  type TtlBounds,
  type Unsubscribe,
  type WaitingCapability,
} from './capabilities.ts'
export {
  checkInstant,
  checkKey,
  checkMaxWaitMs,
  checkOperator,
  checkOwnerId,
  checkReason,
  checkSessionId,
  checkText,
  checkTtlMs,
  MAX_KEY_BYTES,
  MAX_OPERATOR_LENGTH,
  MAX_OWNER_ID_LENGTH,
  MAX_REASON_LENGTH,
  MAX_TTL_MS,
  MAX_WAIT_MS,
} from './checks.ts'
export {
  checkFencingToken,
  FENCING_TOKEN_PATTERN,
  MAX_FENCING_TOKEN,
  parseFencingToken,
} from './fencing-token.ts'
export {
  ContentionError,
  FencedOutError,
  LockError,
  LockLostError,
  NotLeaderError,
  RetryableLockError,
  SessionDeadError,
  TerminalLockError,
} from './lock-errors.ts'
export { LockHandle } from './lock-handle.ts'
export { LockInfo } from './lock-info.ts'
export { LockOutcome } from './lock-outcome.ts'
export type { LockService, SessionScope } from './lock-service.ts'
export type { LockStore } from './lock-store.ts'
export type { SessionRegistry } from './session-registry.ts'
