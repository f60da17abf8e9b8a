import Type from 'typebox'
import { type ErrorEnvelope, errorEnvelope } from './error-envelope.ts'
import type { OperationName } from './operations.ts'
import { operations } from './operations.ts'
import { Schema } from './schema.ts'

/**
 * The multiplexed connection: `GET /v1/connect` upgrades to a WebSocket whose text messages are
 * JSON arrays of frames, as many as one turn of the sender's event loop produced. Each call has an
 * id, unique and increasing on its connection; answers come in any order, one per call.
 *
 * A connection that drops says nothing about the calls in flight: each may or may not have
 * happened. Their waits are abandoned, sessions live on until their TTL.
 */
export const CONNECT_PATH = '/v1/connect'
/** What a client must offer in `Sec-WebSocket-Protocol`; another version would be another name. */
export const CONNECT_SUBPROTOCOL = 'dlock.v1'

/** Client to server. */
export type ClientFrame = CallFrame | CancelFrame

/** A call. Its `in` is the flat input that the operation takes. */
export interface CallFrame {
  readonly id: number
  readonly op: OperationName
  /** As `X-Owner-Id`: on every write. */
  readonly owner?: string
  readonly traceparent?: string
  readonly in: unknown
}

/**
 * The caller gave up its wait. The call is still answered: with `LOCK_CONTENDED`, and then no grant
 * stays behind; or, when the answer was already on its way, with the grant, which is then the
 * client's to release. Any other call goes on as if nothing was said.
 */
export interface CancelFrame {
  readonly id: number
  readonly cancel: true
}

/** Server to client. */
export type ServerFrame = AnswerFrame | FailureFrame

/** A call that was done. Its `out` is the output that the operation gives. */
export interface AnswerFrame {
  readonly id: number
  readonly out: unknown
}

/** A call that was refused or failed. */
export interface FailureFrame {
  readonly id: number
  readonly error: ErrorEnvelope
}

const closed = { additionalProperties: false }
const idField = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })

/** The shape of a `CallFrame`, less its input, which the operation checks. */
export const callFrame: Schema<CallFrame> = Schema.of<CallFrame>()(
  Type.Object(
    {
      id: idField,
      op: Type.Enum(Object.keys(operations) as OperationName[]),
      owner: Type.Optional(Type.String()),
      traceparent: Type.Optional(Type.String()),
      in: Type.Unknown(),
    },
    closed,
  ),
)

/** The shape of a `CancelFrame`. */
export const cancelFrame: Schema<CancelFrame> = Schema.of<CancelFrame>()(
  Type.Object({ id: idField, cancel: Type.Literal(true) }, closed),
)

/** The shape of a `ServerFrame`, less its output. */
export const serverFrame: Schema<ServerFrame> = Schema.of<ServerFrame>()(
  Type.Union([
    Type.Object({ id: idField, out: Type.Unknown() }),
    Type.Object({ id: idField, error: Type.Unsafe<ErrorEnvelope>(errorEnvelope.json) }),
  ]),
)
