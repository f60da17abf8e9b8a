import { afterAll, beforeAll, expect, test } from 'vitest'
import { Town } from './town.ts'

let town: Town
beforeAll(async () => {
  town = await Town.open()
})
afterAll(() => town[Symbol.asyncDispose]())

/**
 * FR-24, P-23: an executor process is killed with -9 after each step, which is right before the
 * next one, and another goes on. In which state it finds the payout, and what the rail was asked.
 */
test.each([
  { step: 'acquired', finds: 'PENDING', ends: 'POSTED', asked: 1 },
  { step: 'claimed', finds: 'CLAIMED', ends: 'POSTED', asked: 1 },
  // "Submitted" was said and the proxy never asked: proven by its record, under a raised mark.
  { step: 'submitted', finds: 'RAIL_SUBMITTED', ends: 'POSTED', asked: 1 },
  // The rail has paid and nobody recorded it: the proxy's record is the evidence.
  { step: 'answered', finds: 'RAIL_SUBMITTED', ends: 'POSTED', asked: 1 },
  { step: 'recorded', finds: 'RAIL_ACKED', ends: 'POSTED', asked: 1 },
  { step: 'posted', finds: 'POSTED', ends: 'POSTED', asked: 1 },
] as const)('killed after $step: the next holder never submits again', async (row) => {
  const payout = await town.payout()
  const child = await town.executorHeldAt(row.step)
  await town.until(payout, row.finds)
  await town.kill(child, payout)
  await using _next = await town.executor({ PAYOUT_OWNER: 'the-next-one' })
  await town.until(payout, row.ends)
  expect(await town.railRequests(payout)).toBe(row.asked)
  expect((await town.reconcile()).discrepancies).toEqual([])
})

test('P-23: killed after an unclear answer of the rail: ambiguous for the next one, not paid again', async () => {
  await town.faults({ lostReplyRate: 1 })
  const payout = await town.payout()
  const child = await town.executorHeldAt('answered')
  await town.kill(child, payout)
  await town.faults({ lostReplyRate: 0 })
  {
    await using _next = await town.executor({ PAYOUT_OWNER: 'the-next-one' })
    await town.until(payout, 'RAIL_AMBIGUOUS')
  }
  expect(await town.railRequests(payout)).toBe(1)
  // Resolved by the rail's own evidence, then booked by whoever holds the lock next.
  expect((await town.reconcile()).resolved).toEqual([
    { payoutId: payout.payoutId, state: 'RAIL_ACKED' },
  ])
  await using _last = await town.executor()
  await town.until(payout, 'POSTED')
  expect(await town.railRequests(payout)).toBe(1)
})
