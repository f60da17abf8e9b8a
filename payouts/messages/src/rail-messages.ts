import { type Operation, Schema } from '@dlock/protocol'
import Type from 'typebox'
import {
  amountField,
  closed,
  currencyField,
  type Fenced,
  fencedFields,
  nameField,
  operation,
} from './fields.ts'
import { advanceOperation, type FenceNow, type FloorPush } from './payment-messages.ts'

/** What the rail proxy (guard 2) takes and gives. */
export interface RailSubmission extends Fenced {
  readonly payoutId: string
  readonly accountId: string
  readonly amountMinor: number
  readonly currency: string
  readonly beneficiaryRef: string
}

/** As the attempt table of the guard has it; UNRESOLVED and TIMEOUT both mean unknown. */
export type SubmissionOutcome =
  | 'UNRESOLVED'
  | 'ACKED'
  | 'REJECTED'
  | 'TIMEOUT'
  | 'NOT_PRESENTED'
  | 'FENCED'
  | 'DUPLICATE'

export interface SubmissionRecord {
  readonly attemptId: string
  readonly payoutId: string
  readonly ownerId: string
  readonly fencingToken: string
  readonly outcome: SubmissionOutcome
  readonly railReference?: string
  readonly attemptedAt: string
}

export interface RailAcknowledgement {
  readonly attemptId: string
  readonly railReference: string
}

export interface OfPayout {
  readonly payoutId: string
}
const ofPayout: Schema<OfPayout> = Schema.of<OfPayout>()(
  Type.Object({ payoutId: nameField }, closed),
)

/** A transfer as the rail's own look-up tells it: eventually. */
export interface RailTransfer {
  readonly railReference: string
  readonly clientRef: string
  readonly amountMinor: number
  readonly currency: string
}

/** The rail proxy's calls. */
export interface RailOperations {
  readonly submit: Operation<RailSubmission, RailAcknowledgement>
  readonly submissions: Operation<OfPayout, { readonly items: readonly SubmissionRecord[] }>
  readonly transfers: Operation<OfPayout, { readonly items: readonly RailTransfer[] }>
  readonly advance: Operation<FloorPush, FenceNow>
}

const submissionRecord = Type.Object({
  attemptId: Type.String(),
  payoutId: Type.String(),
  ownerId: Type.String(),
  fencingToken: Type.String(),
  outcome: Type.Enum([
    'UNRESOLVED',
    'ACKED',
    'REJECTED',
    'TIMEOUT',
    'NOT_PRESENTED',
    'FENCED',
    'DUPLICATE',
  ]),
  railReference: Type.Optional(Type.String()),
  attemptedAt: Type.String(),
})
const railTransfer = Type.Object({
  railReference: Type.String(),
  clientRef: Type.String(),
  amountMinor: Type.Integer(),
  currency: Type.String(),
})

export const railOperations: RailOperations = {
  submit: operation<RailSubmission, RailAcknowledgement>({
    summary: 'Present a payout to the rail: once, whatever happens',
    path: '/v1/rail/submissions',
    input: Schema.of<RailSubmission>()(
      Type.Object(
        {
          ...fencedFields,
          payoutId: nameField,
          accountId: nameField,
          amountMinor: amountField,
          currency: currencyField,
          beneficiaryRef: nameField,
        },
        closed,
      ),
    ),
    output: Schema.of<RailAcknowledgement>()(
      Type.Object({ attemptId: Type.String(), railReference: nameField }),
    ),
    failures: [
      'FENCED_OUT',
      'DUPLICATE_SUBMISSION',
      'RAIL_REJECTED',
      'RAIL_UNAVAILABLE',
      'RAIL_AMBIGUOUS',
    ],
  }),
  submissions: operation<OfPayout, { readonly items: readonly SubmissionRecord[] }>({
    summary: 'Every attempt of a payout, the refused ones too, oldest first',
    method: 'GET',
    path: '/v1/rail/submissions',
    input: ofPayout,
    output: Schema.of<{ readonly items: readonly SubmissionRecord[] }>()(
      Type.Object({ items: Type.Array(submissionRecord) }),
    ),
  }),
  /** Only the proxy may talk to the rail, so the reconciler's look-up goes through it. */
  transfers: operation<OfPayout, { readonly items: readonly RailTransfer[] }>({
    summary: 'The rail’s own look-up of a payout',
    method: 'GET',
    path: '/v1/rail/transfers',
    input: ofPayout,
    output: Schema.of<{ readonly items: readonly RailTransfer[] }>()(
      Type.Object({ items: Type.Array(railTransfer) }),
    ),
    failures: ['RAIL_UNAVAILABLE'],
  }),
  advance: advanceOperation,
}
