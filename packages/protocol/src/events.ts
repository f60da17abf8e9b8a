import Type from 'typebox'
import { countField, fencingTokenField, keyField, ownerIdField, timeField } from './fields.ts'
import { Schema } from './schema.ts'

/**
 * L10, `GET /v1/events`: what happens on this server, as server-sent events. The event's name is
 * the `type`, its data the whole object. Advisory, from now on, nothing is repeated after a
 * reconnect; a `gap` says how many events a slow reader has missed.
 */
export type WireEvent =
  | GrantEvent
  | GrantedEvent
  | RevokedEvent
  | SessionEvent
  | RegressionEvent
  | GapEvent

/** A lock was granted, after a wait of `waitedMillis`. */
export interface GrantedEvent {
  readonly type: 'lock_granted'
  readonly at: string
  readonly key: string
  readonly ownerId: string
  readonly fencingToken: string
  readonly waitedMillis: number
}

/** A grant ended: by its holder, or because its lease did. */
export interface GrantEvent {
  readonly type: 'lock_released' | 'lease_expired'
  readonly at: string
  readonly key: string
  readonly ownerId: string
  readonly fencingToken: string
}

/** An operator took a grant away. */
export interface RevokedEvent {
  readonly type: 'lock_revoked'
  readonly at: string
  readonly key: string
  readonly operator: string
  readonly reason: string
  readonly previousOwnerId: string
  readonly previousToken: string
  readonly newTokenFloor: string
}

/** A session began or ended. */
export interface SessionEvent {
  readonly type: 'session_opened' | 'session_closed' | 'session_expired'
  readonly at: string
  readonly ownerId: string
}

/** The store returned a token that is not above one it gave before: stop and look (INV-04). */
export interface RegressionEvent {
  readonly type: 'token_regression'
  readonly at: string
  readonly key: string
  readonly fencingToken: string
  readonly highestSeen: string
}

/** This reader was too slow, and missed that many events. */
export interface GapEvent {
  readonly type: 'gap'
  readonly at: string
  readonly missed: number
}

/** Where the events are streamed. */
export const EVENTS_PATH = '/v1/events'

const grantFields = {
  at: timeField,
  key: keyField,
  ownerId: ownerIdField,
  fencingToken: fencingTokenField,
}

/** The shape of a `WireEvent`. */
export const wireEvent: Schema<WireEvent> = Schema.of<WireEvent>()(
  Type.Union([
    Type.Object({ type: Type.Literal('lock_granted'), ...grantFields, waitedMillis: countField }),
    Type.Object({ type: Type.Enum(['lock_released', 'lease_expired']), ...grantFields }),
    Type.Object({
      type: Type.Literal('lock_revoked'),
      at: timeField,
      key: keyField,
      operator: Type.String(),
      reason: Type.String(),
      previousOwnerId: ownerIdField,
      previousToken: fencingTokenField,
      newTokenFloor: fencingTokenField,
    }),
    Type.Object({
      type: Type.Enum(['session_opened', 'session_closed', 'session_expired']),
      at: timeField,
      ownerId: ownerIdField,
    }),
    Type.Object({
      type: Type.Literal('token_regression'),
      at: timeField,
      key: keyField,
      fencingToken: fencingTokenField,
      highestSeen: fencingTokenField,
    }),
    Type.Object({ type: Type.Literal('gap'), at: timeField, missed: countField }),
  ]),
)
