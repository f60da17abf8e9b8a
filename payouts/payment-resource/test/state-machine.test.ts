import {
  nextState,
  paymentOperations as operations,
  PAYOUT_STATES,
  type PayoutEvent,
  type PayoutState,
  type RailOutcome,
  TRANSITIONS,
} from '@dlock/messages'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PaymentDesk } from './payment-desk.ts'

let desk: PaymentDesk
beforeAll(async () => {
  desk = await PaymentDesk.open()
})
afterAll(() => desk[Symbol.asyncDispose]())

const OUTCOME_OF: Partial<Record<PayoutEvent, RailOutcome>> = {
  rail_acked: 'ACKED',
  rail_rejected: 'REJECTED',
  rail_not_presented: 'NOT_PRESENTED',
  rail_ambiguous: 'AMBIGUOUS',
}

/** Every event that can be caused over HTTP. The reconciler's two are in its own tests. */
const EVENTS: readonly PayoutEvent[] = [
  'claim',
  'submit',
  'rail_acked',
  'rail_rejected',
  'rail_not_presented',
  'rail_ambiguous',
  'post',
  'cancel',
  'abandon',
]

async function cause(
  event: PayoutEvent,
  state: PayoutState,
): Promise<{ code: string; now: string }> {
  const { payoutId, accountId, token } = await desk.inState(state)
  // The fence must not be the reason: the claim comes with a new token, the rest continue.
  await desk.pool.query('UPDATE account SET fence = $2 WHERE account_id = $1', [accountId, token])
  const by = desk.fenced(payoutId, event === 'claim' ? desk.nextToken() : token)
  const submissionId = 'sub-1'
  const railReference = 'R-1'
  const operator = { payoutId, ownerId: 'operator', reason: 'because of a test' }
  const railOutcome = OUTCOME_OF[event]
  const claimable = state === 'PENDING' || state === 'CLAIMED' || state === 'RAIL_SUBMITTED'
  const expectedState = claimable ? state : 'RAIL_ACKED'
  const answered =
    event === 'claim'
      ? desk.ask(operations.claim, { ...by, expectedState })
      : event === 'submit'
        ? desk.ask(operations.submitted, { ...by, submissionId: 'sub-2' })
        : event === 'post'
          ? desk.ask(operations.post, { ...by, submissionId, railReference })
          : event === 'cancel'
            ? desk.ask(operations.cancel, operator)
            : event === 'abandon'
              ? desk.ask(operations.abandon, operator)
              : desk.ask(operations.outcome, {
                  ...by,
                  submissionId,
                  railOutcome: railOutcome ?? 'ACKED',
                  ...(railOutcome === 'ACKED' && { railReference: 'R-other' }),
                })
  return { code: await desk.codeOf(answered), now: await desk.state(payoutId) }
}

describe.each(PAYOUT_STATES)('FR-22: from %s', (state) => {
  test.each(EVENTS)('%s', async (event) => {
    const to = nextState(state, event)
    const { code, now } = await cause(event, state)
    if (to !== undefined) {
      expect({ code, now }).toEqual({ code: to, now: to })
      return
    }
    // A holder's repeated last step is answered as done before; it changes nothing.
    const isRepeated = code === state
    expect(isRepeated ? 'PAYOUT_NOT_CLAIMABLE' : code).toBe('PAYOUT_NOT_CLAIMABLE')
    expect(now).toBe(state)
  })
})

test('FR-22: a payout without funds fails at its claim, and no money is set aside', async () => {
  const accountId = await desk.account(99)
  const payoutId = await desk.payout(accountId, 100)
  const by = desk.fenced(payoutId, desk.nextToken())
  const claim = (): Promise<string> =>
    desk.codeOf(desk.ask(operations.claim, { ...by, expectedState: 'PENDING' }))
  expect(await claim()).toBe('INSUFFICIENT_FUNDS')
  expect(await claim()).toBe('INSUFFICIENT_FUNDS')
  expect(await desk.state(payoutId)).toBe('FAILED')
  const account = await desk.ask(operations.getAccount, { accountId })
  expect(account).toMatchObject({ output: { balanceMinor: 99, reservedMinor: 0 } })
})

test('a claim repeated after the rail has declined does not say "insufficient funds"', async () => {
  const { payoutId, token } = await desk.inState('RAIL_SUBMITTED')
  const by = desk.fenced(payoutId, token)
  const rejected = { ...by, submissionId: 'sub-1', railOutcome: 'REJECTED' } as const
  expect(await desk.codeOf(desk.ask(operations.outcome, rejected))).toBe('FAILED')
  const again = { ...by, expectedState: 'PENDING' } as const
  expect(await desk.codeOf(desk.ask(operations.claim, again))).toBe('PAYOUT_NOT_CLAIMABLE')
})

test('INV-08: nothing leads out of a final state', () => {
  const finals: readonly PayoutState[] = ['POSTED', 'FAILED', 'ABANDONED']
  expect(TRANSITIONS.filter(({ from }) => finals.includes(from))).toEqual([])
})

test('FR-30: every step is attributable to an actor and a token', async () => {
  const { payoutId, token } = await desk.inState('POSTED')
  const { rows } = await desk.pool.query(
    'SELECT event, to_state, actor, fence::text FROM payout_event WHERE payout_id = $1 ORDER BY event_id',
    [payoutId],
  )
  const step = (event: string, to_state: string): object => {
    return { event, to_state, actor: 'worker', fence: token.toString() }
  }
  expect(rows).toEqual([
    { event: 'create', to_state: 'PENDING', actor: 'test', fence: '0' },
    step('claim', 'CLAIMED'),
    step('submit', 'RAIL_SUBMITTED'),
    step('rail_acked', 'RAIL_ACKED'),
    step('post', 'POSTED'),
  ])
})
