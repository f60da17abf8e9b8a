import {
  type ErrorCode,
  FENCING_TOKEN_HEADER,
  FENCING_TOKEN_PATTERN,
  IDEMPOTENCY_KEY_HEADER,
  type Operation,
  OWNER_ID_HEADER,
  type Schema,
} from '@dlock/protocol'
import Type, { type TInteger, type TString } from 'typebox'

/** The fields that every payout service spells alike. */
export const closed: { additionalProperties: false } = { additionalProperties: false }

/** The id of an account, a payout, a submission, …: 1 to 64 unreserved characters. */
export const nameField: TString = Type.String({ pattern: '^[A-Za-z0-9._:-]{1,64}$' })
/** Whole minor units (cents), from 1; a float has no place in money. */
export const amountField: TInteger = Type.Integer({ minimum: 1, maximum: 1_000_000_000_000 })
export const balanceField: TInteger = Type.Integer({ minimum: 0, maximum: 1_000_000_000_000_000 })
export const currencyField: TString = Type.String({ pattern: '^[A-Z]{3}$' })
/** A fencing token; its upper bound is checked where it is read. */
export const tokenField: TString = Type.String({ pattern: FENCING_TOKEN_PATTERN.source })

/** Every write says who makes it (FR-30). */
export interface Signed {
  readonly ownerId: string
}
export const signedFields: { ownerId: TString } = {
  ownerId: Type.String({ minLength: 1, maxLength: 64 }),
}

/** Every protected write carries the token of the lock it is made under, and names its effect. */
export interface Fenced extends Signed {
  readonly fencingToken: string
  readonly idempotencyKey: string
}
export const fencedFields: { ownerId: TString; fencingToken: TString; idempotencyKey: TString } = {
  ...signedFields,
  fencingToken: tokenField,
  idempotencyKey: Type.String({ minLength: 1, maxLength: 128 }),
}

const HEADERS: Readonly<Record<string, string>> = {
  ownerId: OWNER_ID_HEADER,
  fencingToken: FENCING_TOKEN_HEADER,
  idempotencyKey: IDEMPOTENCY_KEY_HEADER,
}

/** A row of a service's table of calls; the defaults are those of a POST that answers 200. */
export function operation<Input, Output>(row: {
  readonly summary: string
  readonly method?: 'GET' | 'POST'
  readonly path: string
  readonly input: Schema<Input>
  readonly output: Schema<Output>
  readonly failures?: readonly ErrorCode[]
}): Operation<Input, Output> {
  const { properties } = row.input.json as { properties: Record<string, unknown> }
  const carried = Object.entries(HEADERS).filter(([field]) => field in properties)
  return {
    number: '',
    method: 'POST',
    status: 200,
    write: 'ownerId' in properties,
    repeatable: true,
    failures: [],
    headers: Object.fromEntries(carried),
    ...row,
  }
}
