import Type from 'typebox'
import {
  countField,
  fencingTokenField,
  keyField,
  lockTtlField,
  ownerIdField,
  sessionIdField,
  timeField,
} from './fields.ts'
import {
  DEFAULT_SESSION_TTL_MS,
  MAX_RENEWALS_PER_HEARTBEAT,
  MAX_SESSION_TTL_MS,
  MIN_SESSION_TTL_MS,
} from './limits.ts'
import type { Renewed } from './lock-messages.ts'
import { Schema } from './schema.ts'

/**
 * What the calls of a session take and give. An input is flat: over HTTP its fields come from the
 * path, the headers and the body, in a frame they stand together. Inputs are closed (an unknown
 * field is refused); outputs are open (a later server may say more).
 *
 * Times are the store's or the server's wall clock, for people; tokens are decimal strings.
 */
const closed = { additionalProperties: false }

const sessionTtlField = Type.Integer({
  minimum: MIN_SESSION_TTL_MS,
  maximum: MAX_SESSION_TTL_MS,
  description: `The session's lease, in milliseconds; ${DEFAULT_SESSION_TTL_MS} when absent, unless the server is configured otherwise.`,
})

/** L1: open a session. */
export interface OpenSessionInput {
  /** Must be the caller's own `X-Owner-Id`. */
  readonly ownerId: string
  readonly ttlMillis?: number
}

export const openSessionInput: Schema<OpenSessionInput> = Schema.of<OpenSessionInput>()(
  Type.Object({ ownerId: ownerIdField, ttlMillis: Type.Optional(sessionTtlField) }, closed),
)

/** A session that lives from now. */
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

/** L2: keep a session alive, and renew its grants in the same request. */
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

/** A grant that is gone: expired, released, revoked or taken over. */
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

/** L3: close a session, and release every lock on it. May be repeated. */
export interface CloseSessionInput {
  readonly sessionId: string
}

export const closeSessionInput: Schema<CloseSessionInput> = Schema.of<CloseSessionInput>()(
  Type.Object({ sessionId: sessionIdField }, closed),
)
