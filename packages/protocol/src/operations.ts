import type { ErrorCode } from './error-codes.ts'
import { FENCING_TOKEN_HEADER, SESSION_ID_HEADER } from './headers.ts'
import {
  type AcquireInput,
  acquireInput,
  type Done,
  done,
  type InspectInput,
  inspectInput,
  type LockGrant,
  type LockView,
  lockGrant,
  lockView,
  type ReleaseInput,
  type Renewed,
  type RenewInput,
  type Revoked,
  type RevokeInput,
  releaseInput,
  renewed,
  renewInput,
  revoked,
  revokeInput,
} from './lock-messages.ts'
import type { Schema } from './schema.ts'
import {
  type CloseSessionInput,
  closeSessionInput,
  type Heartbeat,
  type HeartbeatInput,
  heartbeat,
  heartbeatInput,
  type OpenedSession,
  type OpenSessionInput,
  openedSession,
  openSessionInput,
} from './session-messages.ts'

/** A call of the service: how it is spelled over HTTP, what it takes, what it gives. */
export interface Operation<Input, Output> {
  /** `L1` … `L9` of the design, or `operators` for what is beside it. */
  readonly number: string
  readonly summary: string
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** With `{field}` for each field of the input that travels in the path. */
  readonly path: string
  /** Fields of the input that travel in headers. Those left travel in the body, or a GET's query. */
  readonly headers: Readonly<Record<string, string>>
  /** Of the answer that is no failure. 204 has no body. */
  readonly status: 200 | 201 | 204
  /** Writes name their caller: `X-Owner-Id`, or a frame's `owner`. */
  readonly write: boolean
  /** Whether the identical request, sent twice, has the effect of one. */
  readonly repeatable: boolean
  readonly input: Schema<Input>
  readonly output: Schema<Output>
  /** The failures of its own; see `commonFailures`. */
  readonly failures: readonly ErrorCode[]
}

/** L1 … L8, which the multiplexed connection carries too. */
export interface Operations {
  readonly openSession: Operation<OpenSessionInput, OpenedSession>
  readonly heartbeat: Operation<HeartbeatInput, Heartbeat>
  readonly closeSession: Operation<CloseSessionInput, Done>
  readonly acquire: Operation<AcquireInput, LockGrant>
  readonly renew: Operation<RenewInput, Renewed>
  readonly release: Operation<ReleaseInput, Done>
  readonly inspect: Operation<InspectInput, LockView>
  readonly revoke: Operation<RevokeInput, Revoked>
}

/** The name of a call in `operations`, and in a frame. */
export type OperationName = keyof Operations
/** The flat input that a call takes. */
export type InputOf<Name extends OperationName> = Operations[Name]['input']['accepted']
/** The output that a call gives. */
export type OutputOf<Name extends OperationName> = Operations[Name]['output']['accepted']

/** What any operation may answer besides its own failures. */
export const commonFailures: readonly ErrorCode[] = [
  'VALIDATION_FAILED',
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'CONTENTION_EXCEEDED',
  'NOT_LEADER',
  'STORE_UNAVAILABLE',
  'INTERNAL',
]

/** How the eight calls are spelled. */
export const operations: Operations = {
  openSession: {
    number: 'L1',
    summary: 'Open a session',
    method: 'POST',
    path: '/v1/sessions',
    headers: {},
    status: 201,
    write: true,
    repeatable: false, // twice is two sessions
    input: openSessionInput,
    output: openedSession,
    failures: [],
  },
  heartbeat: {
    number: 'L2',
    summary: 'Keep a session alive, and renew its grants in the same request',
    method: 'POST',
    path: '/v1/sessions/{sessionId}/heartbeat',
    headers: {},
    status: 200,
    write: true,
    repeatable: true,
    input: heartbeatInput,
    output: heartbeat,
    failures: ['INVALID_TOKEN', 'SESSION_UNKNOWN', 'SESSION_EXPIRED'],
  },
  closeSession: {
    number: 'L3',
    summary: 'Close a session and release every lock on it',
    method: 'DELETE',
    path: '/v1/sessions/{sessionId}',
    headers: {},
    status: 204,
    write: true,
    repeatable: true,
    input: closeSessionInput,
    output: done,
    failures: [],
  },
  acquire: {
    number: 'L4',
    summary: 'Acquire a lock, waiting for it if asked to',
    method: 'POST',
    path: '/v1/locks/{key}/acquire',
    headers: {},
    status: 200,
    write: true,
    repeatable: true, // the same session gets the same grant
    input: acquireInput,
    output: lockGrant,
    failures: ['LOCK_CONTENDED', 'SESSION_UNKNOWN', 'SESSION_EXPIRED'],
  },
  renew: {
    number: 'L5',
    summary: 'Prolong a grant that is still held',
    method: 'POST',
    path: '/v1/locks/{key}/renew',
    headers: { fencingToken: FENCING_TOKEN_HEADER },
    status: 200,
    write: true,
    repeatable: true,
    input: renewInput,
    output: renewed,
    failures: ['INVALID_TOKEN', 'LOCK_LOST'],
  },
  release: {
    number: 'L6',
    summary: 'Release a grant; LOCK_LOST, which is benign, when it was gone already',
    method: 'DELETE',
    path: '/v1/locks/{key}',
    headers: { fencingToken: FENCING_TOKEN_HEADER, sessionId: SESSION_ID_HEADER },
    status: 204,
    write: true,
    repeatable: true, // (key, token) is never granted again
    input: releaseInput,
    output: done,
    failures: ['INVALID_TOKEN', 'LOCK_LOST'],
  },
  inspect: {
    number: 'L7',
    summary: 'Look at a lock; advisory',
    method: 'GET',
    path: '/v1/locks/{key}',
    headers: {},
    status: 200,
    write: false,
    repeatable: true,
    input: inspectInput,
    output: lockView,
    failures: [],
  },
  revoke: {
    number: 'L8',
    summary: 'Take a lock away from its holder, whoever it is (operators)',
    method: 'POST',
    path: '/v1/locks/{key}/revoke',
    headers: {},
    status: 200,
    write: true,
    repeatable: false, // the second might hit the next holder
    input: revokeInput,
    output: revoked,
    failures: ['INVALID_TOKEN', 'NOT_FOUND', 'FENCED_OUT'],
  },
}
