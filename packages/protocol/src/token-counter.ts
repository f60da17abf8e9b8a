import Type from 'typebox'
import { fencingTokenField } from './fields.ts'
import type { Operation } from './operations.ts'
import { Schema } from './schema.ts'

/**
 * Beside L1 … L10, for operators, over HTTP only: the counter behind the fencing tokens. After a
 * restore of the store's database it may be behind what guards have seen (INV-04).
 */
export interface TokenCounterOperations {
  readonly readTokenCounter: Operation<ReadTokenCounterInput, TokenCounter>
  readonly advanceTokenCounter: Operation<AdvanceTokenCounterInput, TokenCounter>
}

/** Nothing is asked but where the counter stands. */
export type ReadTokenCounterInput = object
/** Move the counter forward; never back. */
export interface AdvanceTokenCounterInput {
  /** Every later token is above this. A lower one than the counter's changes nothing. */
  readonly above: string
}

/** Where the counter stands. */
export interface TokenCounter {
  /** Every token issued so far is at most this. Absent: none was issued. */
  readonly highestToken?: string
}

const closed = { additionalProperties: false }
const counter: Schema<TokenCounter> = Schema.of<TokenCounter>()(
  Type.Object({ highestToken: Type.Optional(fencingTokenField) }),
)
const operation = {
  number: 'operators',
  path: '/v1/tokens',
  headers: {},
  status: 200,
  repeatable: true,
  output: counter,
} as const

/** How the two calls are spelled. */
export const tokenCounterOperations: TokenCounterOperations = {
  readTokenCounter: {
    ...operation,
    summary: 'The highest fencing token issued so far',
    method: 'GET',
    write: false,
    input: Schema.of<ReadTokenCounterInput>()(Type.Object({}, closed)),
    failures: ['NOT_FOUND'],
  },
  advanceTokenCounter: {
    ...operation,
    summary: 'Make every later fencing token exceed one; forward only',
    method: 'POST',
    write: true,
    input: Schema.of<AdvanceTokenCounterInput>()(Type.Object({ above: fencingTokenField }, closed)),
    failures: ['INVALID_TOKEN', 'NOT_FOUND'],
  },
}
