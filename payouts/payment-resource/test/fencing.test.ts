import { paymentOperations as operations } from '@dlock/messages'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PaymentDesk } from './payment-desk.ts'

let desk: PaymentDesk
beforeAll(async () => {
  desk = await PaymentDesk.open()
})
afterAll(() => desk[Symbol.asyncDispose]())

test('FR-15, FR-16: a stale holder is fenced out of every write, with both tokens', async () => {
  const { payoutId, accountId, token } = await desk.inState('CLAIMED')
  const higher = desk.nextToken()
  const takeOver = { ...desk.fenced(payoutId, higher, 'later'), expectedState: 'CLAIMED' } as const
  expect(await desk.codeOf(desk.ask(operations.claim, takeOver))).toBe('CLAIMED')

  const stale = desk.fenced(payoutId, token)
  const submissionId = 'sub-1'
  const before = await desk.metric('lock_fenced_out_total{resource="account"}')
  const booked = await desk.metric('lock_fenced_out_total{resource="ledger"}')
  const answers = [
    await desk.ask(operations.claim, { ...stale, expectedState: 'CLAIMED' }),
    await desk.ask(operations.submitted, { ...stale, submissionId }),
    await desk.ask(operations.outcome, { ...stale, submissionId, railOutcome: 'AMBIGUOUS' }),
    await desk.ask(operations.post, { ...stale, submissionId, railReference: 'R-1' }),
  ]
  for (const [i, answer] of answers.entries()) {
    expect(answer).toMatchObject({
      kind: 'refused',
      envelope: {
        code: 'FENCED_OUT',
        retrySafe: false,
        details: {
          presentedToken: token.toString(),
          highestToken: higher.toString(),
          resourceType: i === 3 ? 'ledger' : 'account',
          resourceId: accountId,
          ownerId: 'worker',
        },
      },
    })
  }
  expect(await desk.metric('lock_fenced_out_total{resource="account"}')).toBe(before + 3)
  expect(await desk.metric('lock_fenced_out_total{resource="ledger"}')).toBe(booked + 1)
  expect(desk.lines.filter((line) => line.includes('"fenced_out"')).length).toBeGreaterThan(3)
  expect(await desk.state(payoutId)).toBe('CLAIMED')
})

test('P-26: a payout that the new holder never touched is closed to the old one', async () => {
  const accountId = await desk.account()
  const first = await desk.payout(accountId)
  const second = await desk.payout(accountId)
  const old = desk.nextToken()
  const current = desk.nextToken()
  const claim = (payoutId: string, token: bigint): Promise<string> =>
    desk.codeOf(
      desk.ask(operations.claim, { ...desk.fenced(payoutId, token), expectedState: 'PENDING' }),
    )
  expect(await claim(first, current)).toBe('CLAIMED')
  expect(await claim(second, old)).toBe('FENCED_OUT')
})

test('one grant is admitted once: its token opens no second payout', async () => {
  const accountId = await desk.account()
  const token = desk.nextToken()
  const codes: string[] = []
  for (const payoutId of [await desk.payout(accountId), await desk.payout(accountId)]) {
    const input = { ...desk.fenced(payoutId, token), expectedState: 'PENDING' } as const
    codes.push(await desk.codeOf(desk.ask(operations.claim, input)))
  }
  expect(codes).toEqual(['CLAIMED', 'FENCED_OUT'])
})

test('decision 4: the same grant repeating its own request is answered as before', async () => {
  const { payoutId, accountId, token } = await desk.inState('CLAIMED')
  const by = desk.fenced(payoutId, token)
  const claim = { ...by, expectedState: 'PENDING' } as const
  expect(await desk.codeOf(desk.ask(operations.claim, claim))).toBe('CLAIMED')
  const other = { ...desk.fenced(payoutId, token, 'another'), expectedState: 'PENDING' } as const
  expect(await desk.codeOf(desk.ask(operations.claim, other))).toBe('FENCED_OUT')
  const account = await desk.ask(operations.getAccount, { accountId })
  expect(account).toMatchObject({ output: { reservedMinor: 100 } })

  const posted = await desk.inState('POSTED')
  const again = desk.fenced(posted.payoutId, posted.token)
  const post = { ...again, submissionId: 'sub-1', railReference: 'R-1' }
  expect(await desk.codeOf(desk.ask(operations.post, post))).toBe('POSTED')
  const after = await desk.ask(operations.getAccount, { accountId: posted.accountId })
  expect(after).toMatchObject({ output: { balanceMinor: 900, ledgerSumMinor: 900 } })
})

test('P-27: two concurrent holders: what the later one wrote stands, in the order of tokens', async () => {
  for (let round = 0; round < 10; round += 1) {
    const { payoutId, token } = await desk.inState('CLAIMED')
    const later = desk.nextToken()
    const [mark, takeOver] = await Promise.all([
      desk.codeOf(
        desk.ask(operations.submitted, { ...desk.fenced(payoutId, token), submissionId: 'sub-1' }),
      ),
      desk.codeOf(
        desk.ask(operations.claim, {
          ...desk.fenced(payoutId, later, 'later'),
          expectedState: 'CLAIMED',
        }),
      ),
    ])
    // Either the old holder was first, and the later one sees another state than it expected …
    if (mark === 'RAIL_SUBMITTED') expect(takeOver).toBe('PAYOUT_NOT_CLAIMABLE')
    // … or the fence was raised first, and the old holder is out.
    else expect([mark, takeOver]).toEqual(['FENCED_OUT', 'CLAIMED'])
  }
})

test('two payouts cannot spend the same money, however many claim at once', async () => {
  const accountId = await desk.account(250)
  const payouts = await Promise.all(Array.from({ length: 6 }, () => desk.payout(accountId, 100)))
  const codes = await Promise.all(
    payouts.map((payoutId) => {
      const by = desk.fenced(payoutId, desk.nextToken())
      return desk.codeOf(desk.ask(operations.claim, { ...by, expectedState: 'PENDING' }))
    }),
  )
  expect(codes.filter((code) => code === 'CLAIMED').length).toBeLessThanOrEqual(2)
  const account = await desk.ask(operations.getAccount, { accountId })
  expect(account).toMatchObject({
    output: { reservedMinor: 100 * codes.filter((code) => code === 'CLAIMED').length },
  })
})

test('decision 5: a pushed floor closes the account to the displaced holder at once', async () => {
  const { payoutId, accountId, token } = await desk.inState('CLAIMED')
  const floor = desk.nextToken()
  const push = { ownerId: 'operator', accountId, floor: floor.toString() }
  expect(await desk.ask(operations.advance, push)).toMatchObject({
    output: { fence: floor.toString() },
  })
  const stale = { ...desk.fenced(payoutId, token), submissionId: 'sub-1' }
  expect(await desk.codeOf(desk.ask(operations.submitted, stale))).toBe('FENCED_OUT')
  const next = { ...desk.fenced(payoutId, desk.nextToken()), expectedState: 'CLAIMED' } as const
  expect(await desk.codeOf(desk.ask(operations.claim, next))).toBe('CLAIMED')
})

test('P-28: a floor that no token can follow is refused', async () => {
  const accountId = await desk.account()
  const push = { ownerId: 'operator', accountId, floor: '9223372036854775807' }
  expect(await desk.ask(operations.advance, push)).toMatchObject({
    envelope: { code: 'VALIDATION_FAILED' },
  })
})

test('strictness: tokens, keys and fields are checked, and nothing is coerced', async () => {
  const { payoutId, token } = await desk.inState('PENDING')
  const good = { ...desk.fenced(payoutId, token), expectedState: 'PENDING' } as const
  const code = (change: object): Promise<string> =>
    desk.codeOf(desk.ask(operations.claim, { ...good, ...change }))
  for (const fencingToken of ['0', '-1', '01', ' ', '1.5', '9223372036854775808']) {
    expect(await code({ fencingToken })).toBe('INVALID_TOKEN')
  }
  expect(await code({ idempotencyKey: 'payout:other' })).toBe('IDEMPOTENCY_CONFLICT')
  expect(await code({ expectedState: 'POSTED' })).toBe('VALIDATION_FAILED')
  expect(await code({ more: 1 })).toBe('VALIDATION_FAILED')
  for (const reason of ['too\u0000 short', 'too \ud800 short', 'short', '          ']) {
    const cancelled = desk.ask(operations.cancel, { payoutId, ownerId: 'operator', reason })
    expect(await desk.codeOf(cancelled)).toBe('VALIDATION_FAILED')
  }
  expect(await desk.state(payoutId)).toBe('PENDING')
})

test('FR-29: switched off, the guard is loud, and lets the stale holder through', async () => {
  await using off = await PaymentDesk.open({ PAYMENT_FENCING_ENABLED: 'false' })
  expect(off.lines.join('')).toContain('"guard_disabled"')
  expect(await off.metric('guard_fencing_disabled{resource="account"}')).toBe(1)
  expect(await desk.metric('guard_fencing_disabled{resource="account"}')).toBe(0)
  const { payoutId, accountId, token } = await off.inState('CLAIMED')
  const push = { ownerId: 'operator', accountId, floor: '1000' }
  await off.ask(operations.advance, push)
  const stale = { ...off.fenced(payoutId, token), submissionId: 'sub-1' }
  expect(await off.codeOf(off.ask(operations.submitted, stale))).toBe('RAIL_SUBMITTED')
  const account = await off.ask(operations.getAccount, { accountId })
  expect(account).toMatchObject({ output: { fence: '1000' } })
})
