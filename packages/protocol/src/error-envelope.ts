import Type from 'typebox'
import { type ErrorCode, errorTable } from './error-codes.ts'
import { Schema } from './schema.ts'

/**
 * The body of every answer that is not 2xx, and the `error` of a frame.
 *
 * `details`, by code: `LOCK_CONTENDED` has `holder` and `expiresAt` when they were known;
 * `VALIDATION_FAILED` and `INVALID_TOKEN` have `fields`, a list of `{ field, message }`;
 * `FENCED_OUT` has `presentedToken`, `highestToken`, `resourceType`, `resourceId` and `ownerId`.
 */
export interface ErrorEnvelope {
  readonly code: ErrorCode
  /** For people. */
  readonly message: string
  readonly retrySafe: boolean
  /** When a retry makes sense at all, not before this many milliseconds. */
  readonly retryAfterMillis?: number
  readonly details?: ErrorDetails
  /** The trace id of the server's log lines about this call: 32 hexadecimal digits. */
  readonly traceId: string
}

/** What a code has to say beyond its message; see `ErrorEnvelope`. */
export type ErrorDetails = Readonly<Record<string, unknown>>

/** The shape of an `ErrorEnvelope`. */
export const errorEnvelope: Schema<ErrorEnvelope> = Schema.of<ErrorEnvelope>()(
  Type.Object({
    code: Type.Enum(Object.keys(errorTable) as ErrorCode[]),
    message: Type.String(),
    retrySafe: Type.Boolean({
      description:
        'Whether the identical request may be sent again without risking a duplicate effect or lost exclusion.',
    }),
    retryAfterMillis: Type.Optional(Type.Integer({ minimum: 0 })),
    details: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    traceId: Type.String({ pattern: '^[0-9a-f]{32}$' }),
  }),
)
