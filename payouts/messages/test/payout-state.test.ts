import { expect, test } from 'vitest'
import {
  FINAL_STATES,
  nextState,
  PAYOUT_STATES,
  paymentOperations,
  railOperations,
  TRANSITIONS,
} from '../src/index.ts'

test('FR-22: each event leads one way from a state, every state is reached, and INV-08', () => {
  const pairs = TRANSITIONS.map(({ from, event }) => `${from} ${event}`)
  expect(new Set(pairs).size).toBe(pairs.length)
  const reached = new Set(['PENDING', ...TRANSITIONS.map(({ to }) => to)])
  expect([...reached].sort()).toEqual([...PAYOUT_STATES].sort())
  expect(TRANSITIONS.filter(({ from }) => FINAL_STATES.includes(from))).toEqual([])
  expect(nextState('POSTED', 'claim')).toBeUndefined()
})

test('FR-23: no holder moves an ambiguous payout', () => {
  const out = TRANSITIONS.filter(({ from }) => from === 'RAIL_AMBIGUOUS')
  expect(out.map(({ by }) => by).sort()).toEqual(['operator', 'reconciler', 'reconciler'])
})

test('FR-30: every write names its caller, every protected one its token and its effect', () => {
  for (const operation of Object.values({ ...paymentOperations, ...railOperations })) {
    const { method, path, headers } = operation
    if (method === 'GET') expect({ path, headers }).toEqual({ path, headers: {} })
    else expect(headers).toMatchObject({ ownerId: 'X-Owner-Id' })
  }
  for (const name of ['claim', 'submitted', 'outcome', 'post'] as const) {
    expect(Object.values(paymentOperations[name].headers)).toContain('X-Fencing-Token')
    expect(Object.values(paymentOperations[name].headers)).toContain('X-Idempotency-Key')
  }
})
