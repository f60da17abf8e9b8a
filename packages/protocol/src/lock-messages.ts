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
import { Schema } from './schema.ts'

/**
 * What the calls of a lock take and give. An input is flat: over HTTP its fields come from the
 * path, the headers and the body, in a frame they stand together. Inputs are closed (an unknown
 * field is refused); outputs are open (a later server may say more).
 *
 * Times are the store's or the server's wall clock, for people; tokens are decimal strings.
 */
const closed = { additionalProperties: false }

/** L4: acquire a lock. Repeated by the same session, it gives the same grant. */
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

/** A grant, and the lease that it is for. */
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

/** L5: prolong a grant that is still held. */
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

/** A grant that was prolonged; its token is the same. */
export interface Renewed {
  readonly key: string
  readonly fencingToken: string
  readonly ttlMillis: number
  readonly expiresAt: string
}

export const renewed: Schema<Renewed> = Schema.of<Renewed>()(
  Type.Object({
    key: keyField,
    fencingToken: fencingTokenField,
    ttlMillis: countField,
    expiresAt: timeField,
  }),
)

/** L6: release exactly the grant (key, token), and no other (FR-05). */
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

/** L7: look at a lock. */
export interface InspectInput {
  readonly key: string
}

export const inspectInput: Schema<InspectInput> = Schema.of<InspectInput>()(
  Type.Object({ key: keyField }, closed),
)

/** Advisory: stale the moment it was made, and no ground for any decision (FR-07). */
export type LockView = HeldLock | FreeLock
/** A lock that somebody held when the answer was made. */
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

/** A lock that nobody held when the answer was made. */
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

/** L8: take a lock away from whoever holds it (FR-08). For operators. */
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
