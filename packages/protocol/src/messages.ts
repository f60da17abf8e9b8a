import Type from 'typebox'
import {
  countField,
  fencingTokenField,
  keyField,
  lockTtlField,
  operatorField,
  ownerIdField,
  reasonField,
  sessionIdField,
  timeField,
  waitField,
} from './fields.ts'
import {
  DEFAULT_SESSION_TTL_MS,
  MAX_RENEWALS_PER_HEARTBEAT,
  MAX_SESSION_TTL_MS,
  MIN_SESSION_TTL_MS,
} from './limits.ts'
import { Schema } from './schema.ts'

/**
 * What the eight calls take and give. An input is flat: over HTTP its fields come from the path,
 * the headers and the body, in a frame they stand together. Inputs are closed (an unknown field is
 * refused); outputs are open (a later server may say more).
 *
 * Times are the store's or the server's wall clock, for people; tokens are decimal strings.
 */
const closed = { additionalProperties: false }

const sessionTtlField = Type.Integer({
  minimum: MIN_SESSION_TTL_MS,
  maximum: MAX_SESSION_TTL_MS,
  description: `The session's lease, in milliseconds; ${DEFAULT_SESSION_TTL_MS} when absent, unless the server is configured otherwise.`,
})

export interface OpenSessionInput {
  /** Must be the caller's own `X-Owner-Id`. */
  readonly ownerId: string
  readonly ttlMillis?: number
}
export const openSessionInput: Schema<OpenSessionInput> = Schema.of<OpenSessionInput>()(
  Type.Object({ ownerId: ownerIdField, ttlMillis: Type.Optional(sessionTtlField) }, closed),
)

export interface OpenedSession {
  readonly sessionId: string
  readonly ownerId: string
  /** Granted; may be more than was asked. The client counts with this one. */
  readonly ttlMillis: number
  readonly expiresAt: string
}
export const openedSession: Schema<OpenedSession> = Schema.of<OpenedSession>()(
  Type.Object({
    sessionId: sessionIdField,
    ownerId: ownerIdField,
    ttlMillis: countField,
    expiresAt: timeField,
  }),
)

export interface HeartbeatInput {
  readonly sessionId: string
  /**
   * The session's lease from now. When absent: as it was opened, where the server knows; else the
   * longest allowed, because a shorter one than the client counts with would be a lie.
   */
  readonly ttlMillis?: number
  readonly renew?: readonly Renewal[]
}
/** A grant to renew along with its session. */
export interface Renewal {
  readonly key: string
  readonly fencingToken: string
  readonly ttlMillis?: number
}
export const heartbeatInput: Schema<HeartbeatInput> = Schema.of<HeartbeatInput>()(
  Type.Object(
    {
      sessionId: sessionIdField,
      ttlMillis: Type.Optional({
        ...sessionTtlField,
        description: 'The lease from now, in milliseconds; as it was opened when absent.',
      }),
      renew: Type.Optional(
        Type.Array(
          Type.Object(
            {
              key: keyField,
              fencingToken: fencingTokenField,
              ttlMillis: Type.Optional(lockTtlField),
            },
            closed,
          ),
          { maxItems: MAX_RENEWALS_PER_HEARTBEAT },
        ),
      ),
    },
    closed,
  ),
)

/**
 * A session that lives on. Each grant to renew is in `renewed`, in `lost` (now, for good), or in
 * neither: then nothing is known about it, it may well be held still, and the client asks again
 * before its deadline.
 */
export interface Heartbeat {
  readonly sessionId: string
  readonly ttlMillis: number
  readonly expiresAt: string
  readonly serverTime: string
  /** The session's live grants; absent when the store could not say. Advisory. */
  readonly heldLockCount?: number
  readonly renewed: readonly Renewed[]
  readonly lost: readonly LostGrant[]
}
export interface Renewed {
  readonly key: string
  readonly fencingToken: string
  readonly ttlMillis: number
  readonly expiresAt: string
}
export interface LostGrant {
  readonly key: string
  readonly fencingToken: string
}
export const heartbeat: Schema<Heartbeat> = Schema.of<Heartbeat>()(
  Type.Object({
    sessionId: sessionIdField,
    ttlMillis: countField,
    expiresAt: timeField,
    serverTime: timeField,
    heldLockCount: Type.Optional(countField),
    renewed: Type.Array(
      Type.Object({
        key: keyField,
        fencingToken: fencingTokenField,
        ttlMillis: countField,
        expiresAt: timeField,
      }),
      { description: 'The grants that were prolonged.' },
    ),
    lost: Type.Array(Type.Object({ key: keyField, fencingToken: fencingTokenField }), {
      description:
        'The grants that are gone, for good. A grant in neither list is one that nothing is known about: ask again.',
    }),
  }),
)

export interface CloseSessionInput {
  readonly sessionId: string
}
export const closeSessionInput: Schema<CloseSessionInput> = Schema.of<CloseSessionInput>()(
  Type.Object({ sessionId: sessionIdField }, closed),
)

export interface AcquireInput {
  readonly key: string
  readonly sessionId: string
  readonly ttlMillis?: number
  readonly waitMillis?: number
}
export const acquireInput: Schema<AcquireInput> = Schema.of<AcquireInput>()(
  Type.Object(
    {
      key: keyField,
      sessionId: sessionIdField,
      ttlMillis: Type.Optional(lockTtlField),
      waitMillis: Type.Optional(waitField),
    },
    closed,
  ),
)

export interface LockGrant {
  readonly key: string
  readonly ownerId: string
  readonly sessionId: string
  readonly fencingToken: string
  /** Granted; may be more than was asked. The client's deadline counts with this one. */
  readonly ttlMillis: number
  /** When this lease began: of a grant that the session already had, when it was prolonged. */
  readonly acquiredAt: string
  readonly expiresAt: string
}
export const lockGrant: Schema<LockGrant> = Schema.of<LockGrant>()(
  Type.Object({
    key: keyField,
    ownerId: ownerIdField,
    sessionId: sessionIdField,
    fencingToken: fencingTokenField,
    ttlMillis: countField,
    acquiredAt: timeField,
    expiresAt: timeField,
  }),
)

export interface RenewInput {
  readonly key: string
  readonly sessionId: string
  readonly fencingToken: string
  readonly ttlMillis?: number
}
export const renewInput: Schema<RenewInput> = Schema.of<RenewInput>()(
  Type.Object(
    {
      key: keyField,
      sessionId: sessionIdField,
      fencingToken: fencingTokenField,
      ttlMillis: Type.Optional(lockTtlField),
    },
    closed,
  ),
)
export const renewed: Schema<Renewed> = Schema.of<Renewed>()(
  Type.Object({
    key: keyField,
    fencingToken: fencingTokenField,
    ttlMillis: countField,
    expiresAt: timeField,
  }),
)

export interface ReleaseInput {
  readonly key: string
  readonly fencingToken: string
  /** The session whose grant it is; when absent, the server reads whose grant it is. */
  readonly sessionId?: string
}
export const releaseInput: Schema<ReleaseInput> = Schema.of<ReleaseInput>()(
  Type.Object(
    { key: keyField, fencingToken: fencingTokenField, sessionId: Type.Optional(sessionIdField) },
    closed,
  ),
)

export interface InspectInput {
  readonly key: string
}
export const inspectInput: Schema<InspectInput> = Schema.of<InspectInput>()(
  Type.Object({ key: keyField }, closed),
)

/** Advisory: stale the moment it was made, and no ground for any decision (FR-07). */
export type LockView = HeldLock | FreeLock
export interface HeldLock {
  readonly held: true
  readonly key: string
  readonly ownerId: string
  readonly fencingToken: string
  readonly acquiredAt: string
  readonly expiresAt: string
  /** Waiters that the answering server knows of. */
  readonly waiterCount: number
}
export interface FreeLock {
  readonly held: false
  readonly key: string
}
const heldLockType = Type.Object({
  held: Type.Literal(true),
  key: keyField,
  ownerId: ownerIdField,
  fencingToken: fencingTokenField,
  acquiredAt: timeField,
  expiresAt: timeField,
  waiterCount: countField,
})
export const heldLock: Schema<HeldLock> = Schema.of<HeldLock>()(heldLockType)
export const lockView: Schema<LockView> = Schema.of<LockView>()(
  Type.Union([heldLockType, Type.Object({ held: Type.Literal(false), key: keyField })]),
)

export interface RevokeInput {
  readonly key: string
  readonly operator: string
  readonly reason: string
  /** Revoke only this grant; when it is not the key's any more, the answer is `FENCED_OUT`. */
  readonly expectedToken?: string
}
export const revokeInput: Schema<RevokeInput> = Schema.of<RevokeInput>()(
  Type.Object(
    {
      key: keyField,
      operator: operatorField,
      reason: reasonField,
      expectedToken: Type.Optional(fencingTokenField),
    },
    closed,
  ),
)

/**
 * What was revoked. Resources that have seen no higher token accept the revoked one until
 * `newTokenFloor` was pushed to their guards (decision 5).
 */
export interface Revoked {
  readonly revokedToken: string
  readonly newTokenFloor: string
  readonly revocationId: string
}
export const revoked: Schema<Revoked> = Schema.of<Revoked>()(
  Type.Object({
    revokedToken: fencingTokenField,
    newTokenFloor: fencingTokenField,
    revocationId: Type.String(),
  }),
)

/** The answer that says only "done": over HTTP, 204 and no body. */
export type Done = object
export const done: Schema<Done> = Schema.of<Done>()(Type.Object({}))
