import {
  checkFencingToken,
  checkKey,
  checkOperator,
  checkOwnerId,
  checkReason,
  checkSessionId,
  MAX_KEY_BYTES,
  MAX_OPERATOR_LENGTH,
  MAX_OWNER_ID_LENGTH,
  MAX_REASON_LENGTH,
  MAX_TTL_MS,
} from '@dlock/lock-api'
import Type from 'typebox'
import { FENCING_TOKEN_PATTERN } from './fencing-token.ts'
import { MAX_WAIT_MS, MIN_REASON_LENGTH } from './limits.ts'
import { TIME_PATTERN } from './time.ts'

/**
 * The fields that requests and answers are made of. JSON Schema says what it can; the contract's
 * own checks say the rest (bytes, control characters, 2^63 − 1), so that no service refuses on one
 * road what it takes on another.
 */
export const keyField: Type.TRefine<Type.TString> = checked(
  Type.String({
    minLength: 1,
    maxLength: MAX_KEY_BYTES,
    description: `1 to ${MAX_KEY_BYTES} bytes of UTF-8, without control characters, not blank.`,
  }),
  checkKey,
)

export const ownerIdField: Type.TRefine<Type.TString> = checked(
  Type.String({
    minLength: 1,
    maxLength: MAX_OWNER_ID_LENGTH,
    description: 'Who is calling: a name for people. It identifies nobody; a session does.',
  }),
  checkOwnerId,
)

export const sessionIdField: Type.TRefine<Type.TString> = checked(
  Type.String({
    minLength: 1,
    maxLength: 128,
    description: 'A secret: whoever knows it can act for the session.',
  }),
  checkSessionId,
)

export const fencingTokenField: Type.TRefine<Type.TString> = checked(
  Type.String({
    pattern: FENCING_TOKEN_PATTERN.source,
    description: 'A fencing token: decimal, 1 to 9223372036854775807, no sign, no leading zero.',
  }),
  (text) => FENCING_TOKEN_PATTERN.test(text) && checkFencingToken(BigInt(text)),
)

export const operatorField: Type.TRefine<Type.TString> = checked(
  Type.String({
    minLength: 1,
    maxLength: MAX_OPERATOR_LENGTH,
    description: 'Who revokes; ends in the audit record.',
  }),
  checkOperator,
)

export const reasonField: Type.TRefine<Type.TString> = checked(
  Type.String({
    minLength: MIN_REASON_LENGTH,
    maxLength: MAX_REASON_LENGTH,
    description: 'Why; ends in the audit record.',
  }),
  checkReason,
)

export const timeField: Type.TString = Type.String({
  pattern: TIME_PATTERN.source,
  description: 'RFC 3339, UTC, milliseconds. For people: nothing may be decided with it.',
})

export const lockTtlField: Type.TInteger = Type.Integer({
  minimum: 1,
  maximum: MAX_TTL_MS,
  description:
    'The lease asked for, in milliseconds; 30 000 when absent. The server may allow less than the maximum (an hour, unless configured), and may grant more than was asked.',
})

export const waitField: Type.TInteger = Type.Integer({
  minimum: 0,
  maximum: MAX_WAIT_MS,
  description: 'How long to wait for the holder to go away, in milliseconds; 0 when absent.',
})

/** A whole number from 0, as in counts and durations of answers. */
export const countField: Type.TInteger = Type.Integer({ minimum: 0 })

/** `schema`, and `check` of the contract, whose words go to the caller. */
function checked(
  schema: Type.TString,
  check: (text: string) => unknown,
): Type.TRefine<Type.TString> {
  return Type.Refine(
    schema,
    (text) => complaint(check, text) === undefined,
    (text) => complaint(check, text) ?? '',
  ) as Type.TRefine<Type.TString>
}

/** What `check` has against `text`, without the field's name, which the caller sees beside it. */
function complaint(check: (text: string) => unknown, text: string): string | undefined {
  try {
    check(text)
    return undefined
  } catch (error) {
    return (error as Error).message.replace(/^\w+ /, '')
  }
}
