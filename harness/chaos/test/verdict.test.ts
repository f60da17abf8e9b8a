import { expect, test } from 'vitest'
import { judge, MODES, type Mode, type Round } from '../src/index.ts'

const mode = (name: string): Mode => {
  const found = MODES.find((each) => each.name === name)
  if (found === undefined) throw new Error(name)
  return found
}

const none = { account: 0, ledger: 0, rail: 0 }
const fencedBy = (resourceType: 'account' | 'rail'): Round => ({
  stoppedAfter: resourceType === 'account' ? 'claimed' : 'submitted',
  requestsAtRail: 1,
  paidByRailMinor: 100,
  bookedMinor: 100,
  balanceIsSum: true,
  fencedOut: { ...none, [resourceType]: 1 },
  refusals: [
    { code: 'FENCED_OUT', details: { presentedToken: '9', highestToken: '10', resourceType } },
  ],
  stoppedItself: false,
  tokens: { stopped: '9', later: '10' },
})
const corrupted: Round = {
  ...fencedBy('rail'),
  requestsAtRail: 2,
  paidByRailMinor: 200,
  fencedOut: none,
  refusals: [{ code: 'PAYOUT_NOT_CLAIMABLE', details: {} }],
}
const stoppedItself: Round = {
  ...fencedBy('account'),
  fencedOut: none,
  refusals: [],
  stoppedItself: true,
}

test('each mode passes for its own reason', () => {
  expect(judge(mode('both-on'), [fencedBy('account'), fencedBy('rail')]).passed).toBe(true)
  expect(judge(mode('account-only'), [fencedBy('account')]).passed).toBe(true)
  expect(judge(mode('rail-only'), [fencedBy('rail')]).passed).toBe(true)
  expect(judge(mode('sdk-checks'), [stoppedItself]).passed).toBe(true)
  expect(judge(mode('both-off'), [corrupted]).passed).toBe(true)
})

const wrongState = {
  ...fencedBy('account'),
  refusals: [{ code: 'PAYOUT_NOT_CLAIMABLE', details: {} }],
}
const equalTokens = { ...fencedBy('rail'), tokens: { stopped: '10', later: '10' } }

test.each<[string, string, readonly Round[], RegExp]>([
  ['account-only', 'refused by the state', [wrongState], /PAYOUT_NOT_CLAIMABLE, not FENCED_OUT/],
  ['account-only', 'it stopped itself', [stoppedItself], /no guard was tested/],
  ['account-only', 'the other guard', [{ ...fencedBy('rail'), stoppedAfter: 'claimed' }], /rail/],
  ['rail-only', 'the counter stayed', [{ ...fencedBy('rail'), fencedOut: none }], /is 0, not 1/],
  ['rail-only', 'tokens that prove nothing', [equalTokens], /tokens 9 and 10/],
  ['rail-only', 'paid twice', [{ ...fencedBy('rail'), requestsAtRail: 2 }], /2 requests/],
  ['rail-only', 'unbalanced', [{ ...fencedBy('rail'), balanceIsSum: false }], /not the sum/],
  ['both-on', 'one guard never tested', [fencedBy('account')], /not every round/],
  ['both-off', 'no corruption', [{ ...corrupted, requestsAtRail: 1 }], /no corruption: 1 request/],
  ['both-off', 'the books agree', [{ ...corrupted, bookedMinor: 200 }], /ledger agrees/],
  ['both-off', 'a guard was on', [{ ...corrupted, fencedOut: { ...none, rail: 1 } }], /refused/],
  ['sdk-checks', 'a guard was reached', [fencedBy('account')], /no guard was expected/],
])('a pass for the wrong reason is none: %s, %s', (name, _, rounds, says) => {
  const verdict = judge(mode(name), rounds)
  expect(verdict.passed).toBe(false)
  expect(verdict.says).toMatch(says)
})
