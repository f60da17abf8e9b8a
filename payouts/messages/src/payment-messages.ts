import { type Operation, Schema } from '@dlock/protocol'
import Type from 'typebox'
import {
  amountField,
  balanceField,
  closed,
  currencyField,
  type Fenced,
  fencedFields,
  nameField,
  operation,
  type Signed,
  signedFields,
  tokenField,
} from './fields.ts'
import { PAYOUT_STATES, type PayoutState } from './payout-state.ts'

/** What the payment resource (guard 1) takes and gives. Money is whole minor units. */
export interface Payout {
  readonly payoutId: string
  readonly accountId: string
  readonly amountMinor: number
  readonly currency: string
  readonly beneficiaryRef: string
  readonly state: PayoutState
  /** The holder that claimed it last, and its token. */
  readonly claimedBy?: string
  readonly claimToken?: string
  readonly submissionId?: string
  readonly railReference?: string
  /** Why it ended as it did, for people. */
  readonly reason?: string
  readonly createdAt: string
  readonly updatedAt: string
}

const stateField = Type.Enum([...PAYOUT_STATES])
const time = Type.String()
const payoutType = Type.Object({
  payoutId: nameField,
  accountId: nameField,
  amountMinor: amountField,
  currency: currencyField,
  beneficiaryRef: nameField,
  state: stateField,
  claimedBy: Type.Optional(Type.String()),
  claimToken: Type.Optional(tokenField),
  submissionId: Type.Optional(Type.String()),
  railReference: Type.Optional(Type.String()),
  reason: Type.Optional(Type.String()),
  createdAt: time,
  updatedAt: time,
})
export const payout: Schema<Payout> = Schema.of<Payout>()(payoutType)

export interface NewAccount extends Signed {
  readonly accountId: string
  readonly currency: string
  readonly openingBalanceMinor: number
}

export interface Account {
  readonly accountId: string
  readonly currency: string
  readonly balanceMinor: number
  /** Of payouts that are under way: still in the balance, no longer to be spent. */
  readonly reservedMinor: number
  /** The ledger's own sum; equal to the balance, or somebody has to be woken (FR-25). */
  readonly ledgerSumMinor: number
  /** The highest token accepted for the account, or the floor pushed to it; "0" when none. */
  readonly fence: string
}
export const account: Schema<Account> = Schema.of<Account>()(
  Type.Object({
    accountId: nameField,
    currency: currencyField,
    balanceMinor: balanceField,
    reservedMinor: balanceField,
    ledgerSumMinor: Type.Integer(),
    fence: Type.String(),
  }),
)

export interface NewPayout extends Signed {
  readonly payoutId: string
  readonly accountId: string
  readonly amountMinor: number
  readonly currency: string
  readonly beneficiaryRef: string
}

/** Of a payout's claim: the state it was read in, so that nobody acts on what has changed. */
export interface Claim extends Fenced {
  readonly payoutId: string
  readonly expectedState: 'PENDING' | 'CLAIMED' | 'RAIL_SUBMITTED' | 'RAIL_ACKED'
}
export interface MarkSubmitted extends Fenced {
  readonly payoutId: string
  readonly submissionId: string
}
export type RailOutcome = 'ACKED' | 'REJECTED' | 'NOT_PRESENTED' | 'AMBIGUOUS'
export interface RecordOutcome extends Fenced {
  readonly payoutId: string
  readonly submissionId: string
  readonly railOutcome: RailOutcome
  /** Required with `ACKED`. */
  readonly railReference?: string
}
export interface Post extends Fenced {
  readonly payoutId: string
  readonly submissionId: string
  readonly railReference: string
}
export interface OperatorDecision extends Signed {
  readonly payoutId: string
  readonly reason: string
}
export interface PayoutQuery {
  readonly state?: PayoutState
  readonly accountId?: string
  readonly limit?: number
  readonly cursor?: string
}
export interface PayoutPage {
  readonly items: readonly Payout[]
  readonly nextCursor?: string
}
export interface FloorPush extends Signed {
  readonly accountId: string
  readonly floor: string
}
export interface FenceNow {
  readonly accountId: string
  readonly fence: string
}
export const fenceNow: Schema<FenceNow> = Schema.of<FenceNow>()(
  Type.Object({ accountId: nameField, fence: Type.String() }),
)

const advanceInput: Schema<FloorPush> = Schema.of<FloorPush>()(
  Type.Object({ ...signedFields, accountId: nameField, floor: tokenField }, closed),
)

/** Both guards have it. Signed by the operator, or by a holder that pushes its own token − 1. */
export const advanceOperation: Operation<FloorPush, FenceNow> = operation<FloorPush, FenceNow>({
  summary: 'Raise an account’s fence to a floor (decision 5)',
  path: '/v1/fences/{accountId}/advance',
  input: advanceInput,
  output: fenceNow,
})

const newPayoutFields = {
  payoutId: nameField,
  accountId: nameField,
  amountMinor: amountField,
  currency: currencyField,
  beneficiaryRef: nameField,
}
const reason = Type.Refine(
  Type.String({ minLength: 8, maxLength: 1_024, pattern: '\\S' }),
  (text) => /^[^\p{Cc}\p{Cs}]*$/u.test(text),
  () => 'must hold no control character and no lone surrogate',
) as Type.TRefine<Type.TString>
const onPayout = { ...fencedFields, payoutId: nameField }

/** The payment resource's calls. */
export interface PaymentOperations {
  readonly createAccount: Operation<NewAccount, Account>
  readonly getAccount: Operation<{ readonly accountId: string }, Account>
  readonly createPayout: Operation<NewPayout, Payout>
  readonly listPayouts: Operation<PayoutQuery, PayoutPage>
  readonly getPayout: Operation<{ readonly payoutId: string }, Payout>
  readonly claim: Operation<Claim, Payout>
  readonly submitted: Operation<MarkSubmitted, Payout>
  readonly outcome: Operation<RecordOutcome, Payout>
  readonly post: Operation<Post, Payout>
  readonly cancel: Operation<OperatorDecision, Payout>
  readonly abandon: Operation<OperatorDecision, Payout>
  readonly advance: Operation<FloorPush, FenceNow>
}

export const paymentOperations: PaymentOperations = {
  createAccount: operation<NewAccount, Account>({
    summary: 'Open an account with a balance; again, with the same content, changes nothing',
    path: '/v1/accounts',
    input: Schema.of<NewAccount>()(
      Type.Object(
        {
          ...signedFields,
          accountId: nameField,
          currency: currencyField,
          openingBalanceMinor: balanceField,
        },
        closed,
      ),
    ),
    output: account,
    failures: ['IDEMPOTENCY_CONFLICT'],
  }),
  getAccount: operation<{ readonly accountId: string }, Account>({
    summary: 'An account, with the ledger’s recomputed sum',
    method: 'GET',
    path: '/v1/accounts/{accountId}',
    input: Schema.of<{ readonly accountId: string }>()(
      Type.Object({ accountId: nameField }, closed),
    ),
    output: account,
    failures: ['NOT_FOUND'],
  }),
  createPayout: operation<NewPayout, Payout>({
    summary: 'Ask for a payout; again, with the same content, changes nothing',
    path: '/v1/payouts',
    input: Schema.of<NewPayout>()(Type.Object({ ...signedFields, ...newPayoutFields }, closed)),
    output: payout,
    failures: ['NOT_FOUND', 'IDEMPOTENCY_CONFLICT'],
  }),
  listPayouts: operation<PayoutQuery, PayoutPage>({
    summary: 'Payouts in the order of their making',
    method: 'GET',
    path: '/v1/payouts',
    input: Schema.of<PayoutQuery>()(
      Type.Object(
        {
          state: Type.Optional(stateField),
          accountId: Type.Optional(nameField),
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
          cursor: Type.Optional(Type.String({ pattern: '^[0-9]{1,18}$' })),
        },
        closed,
      ),
    ),
    output: Schema.of<PayoutPage>()(
      Type.Object({
        items: Type.Array(payoutType),
        nextCursor: Type.Optional(Type.String()),
      }),
    ),
  }),
  getPayout: operation<{ readonly payoutId: string }, Payout>({
    summary: 'A payout as it is now',
    method: 'GET',
    path: '/v1/payouts/{payoutId}',
    input: Schema.of<{ readonly payoutId: string }>()(Type.Object({ payoutId: nameField }, closed)),
    output: payout,
    failures: ['NOT_FOUND'],
  }),
  claim: operation<Claim, Payout>({
    summary: 'The admission: claim a payout, or take over one that is under way',
    path: '/v1/payouts/{payoutId}/claim',
    input: Schema.of<Claim>()(
      Type.Object(
        {
          ...onPayout,
          expectedState: Type.Enum(['PENDING', 'CLAIMED', 'RAIL_SUBMITTED', 'RAIL_ACKED']),
        },
        closed,
      ),
    ),
    output: payout,
    failures: ['FENCED_OUT', 'INSUFFICIENT_FUNDS', 'PAYOUT_NOT_CLAIMABLE', 'NOT_FOUND'],
  }),
  submitted: operation<MarkSubmitted, Payout>({
    summary: 'Say that the payout is about to be presented to the rail',
    path: '/v1/payouts/{payoutId}/submitted',
    input: Schema.of<MarkSubmitted>()(
      Type.Object({ ...onPayout, submissionId: nameField }, closed),
    ),
    output: payout,
    failures: ['FENCED_OUT', 'PAYOUT_NOT_CLAIMABLE', 'NOT_FOUND'],
  }),
  outcome: operation<RecordOutcome, Payout>({
    summary: 'Say what the rail answered',
    path: '/v1/payouts/{payoutId}/outcome',
    input: Schema.of<RecordOutcome>()(
      Type.Object(
        {
          ...onPayout,
          submissionId: nameField,
          railOutcome: Type.Enum(['ACKED', 'REJECTED', 'NOT_PRESENTED', 'AMBIGUOUS']),
          railReference: Type.Optional(nameField),
        },
        closed,
      ),
    ),
    output: payout,
    failures: ['FENCED_OUT', 'PAYOUT_NOT_CLAIMABLE', 'NOT_FOUND'],
  }),
  post: operation<Post, Payout>({
    summary: 'Book it: two balanced entries and the balance, in one transaction',
    path: '/v1/payouts/{payoutId}/post',
    input: Schema.of<Post>()(
      Type.Object({ ...onPayout, submissionId: nameField, railReference: nameField }, closed),
    ),
    output: payout,
    failures: ['FENCED_OUT', 'PAYOUT_NOT_CLAIMABLE', 'NOT_FOUND'],
  }),
  cancel: operation<OperatorDecision, Payout>({
    summary: 'Give up a payout that nobody has claimed',
    path: '/v1/payouts/{payoutId}/cancel',
    input: Schema.of<OperatorDecision>()(
      Type.Object({ ...signedFields, payoutId: nameField, reason }, closed),
    ),
    output: payout,
    failures: ['PAYOUT_NOT_CLAIMABLE', 'NOT_FOUND'],
  }),
  abandon: operation<OperatorDecision, Payout>({
    summary: 'Give up a payout whose outcome nobody can learn',
    path: '/v1/payouts/{payoutId}/abandon',
    input: Schema.of<OperatorDecision>()(
      Type.Object({ ...signedFields, payoutId: nameField, reason }, closed),
    ),
    output: payout,
    failures: ['PAYOUT_NOT_CLAIMABLE', 'NOT_FOUND'],
  }),
  advance: advanceOperation,
}
