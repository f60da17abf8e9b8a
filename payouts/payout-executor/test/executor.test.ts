import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { paymentOperations as payments } from '@dlock/messages'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Town } from './town.ts'

let town: Town
beforeAll(async () => {
  town = await Town.open({ RAIL_READ_TIMEOUT: '300ms' })
})
afterAll(() => town[Symbol.asyncDispose]())

test('payouts of several accounts drain, by several executors, each paid exactly once', async () => {
  const payouts = [...(await town.payouts(3)), ...(await town.payouts(3)), await town.payout()]
  await using _first = await town.executor({ PAYOUT_OWNER: 'first' })
  await using _second = await town.executor({ PAYOUT_OWNER: 'second' })
  for (const payout of payouts) {
    await town.until(payout, 'POSTED')
    expect(await town.railRequests(payout)).toBe(1)
  }
  const account = await town.ask(payments.getAccount, { accountId: payouts[0]?.accountId ?? '' })
  expect(account).toMatchObject({ balanceMinor: 700, ledgerSumMinor: 700, reservedMinor: 0 })
})

test('a declined payout fails, and its money is free again', async () => {
  await town.faults({ declineRate: 1 })
  const payout = await town.payout()
  {
    await using _executor = await town.executor()
    await town.until(payout, 'FAILED')
  }
  await town.faults({ declineRate: 0 })
  const account = await town.ask(payments.getAccount, { accountId: payout.accountId })
  expect(account).toMatchObject({ balanceMinor: 1_000, reservedMinor: 0 })
})

test.each([
  ['a lost reply', { lostReplyRate: 1 }],
  ['a failure that proves nothing', { failureRate: 1 }],
  ['a slow reply', { slowRate: 1, slowMs: 600 }],
] as const)(
  'FR-23: %s makes the payout ambiguous, and nobody submits it again',
  async (_, faults) => {
    await town.faults(faults)
    const payout = await town.payout()
    await using _executor = await town.executor()
    await town.until(payout, 'RAIL_AMBIGUOUS')
    await town.faults({ lostReplyRate: 0, failureRate: 0, slowRate: 0 })
    const other = await town.payout()
    await town.until(other, 'POSTED') // several passes later
    expect(await town.railRequests(payout)).toBe(1)
    expect(await town.ask(payments.getPayout, { payoutId: payout.payoutId })).toMatchObject({
      state: 'RAIL_AMBIGUOUS',
    })
  },
)

test('payouts that cannot go on, however many, keep no other from its turn', async () => {
  await town.faults({ lostReplyRate: 1 })
  const [stuck] = await town.payouts(1, 1_000)
  await using _executor = await town.executor()
  if (stuck === undefined) throw new Error('no payout')
  await town.until(stuck, 'RAIL_AMBIGUOUS') // until it is resolved, all of its account's money is set aside
  await town.faults({ lostReplyRate: 0 })
  await town.importPayouts(
    Array.from({ length: 201 }, (_, i) => `stuck-${i},${stuck.accountId},1,EUR,ben-1`),
  )
  await town.until(await town.payout(), 'POSTED')
})

test('an acknowledgement that comes twice is one', async () => {
  await town.faults({ duplicateAckRate: 1 })
  const payout = await town.payout()
  await using _executor = await town.executor()
  await town.until(payout, 'POSTED')
  await town.faults({ duplicateAckRate: 0 })
  expect(await town.railRequests(payout)).toBe(1)
})

/** A lock server that is there and of no use; `undefined`: nobody listens. */
const USELESS: readonly (readonly [string, RequestListener | undefined])[] = [
  ['down', undefined],
  ['silent', () => undefined],
  ['answering errors', (_, res) => void res.writeHead(500).end('{}')],
]

test.each(USELESS)(
  'FR-27: with a lock service that is %s nothing is paid, the backlog ages, and then it drains',
  async (_, listener) => {
    const payout = await town.payout()
    const useless = createServer(listener)
    await new Promise<void>((resolve) => useless.listen(0, '127.0.0.1', resolve))
    const { port } = useless.address() as AddressInfo
    if (listener === undefined) useless.close()
    {
      await using cutOff = await town.executor({ PAYOUT_LOCK_URL: `http://127.0.0.1:${port}` })
      let age = 0
      while (age < 0.5) {
        const text = await (await fetch(`${cutOff.url}/metrics`)).text()
        age = Number(/^payout_backlog_age_seconds (.*)$/m.exec(text)?.[1])
      }
      const read = await town.ask(payments.getPayout, { payoutId: payout.payoutId })
      expect(read.state).toBe('PENDING')
      expect(await town.railRequests(payout)).toBe(0)
    }
    useless.closeAllConnections()
    useless.close()
    await using _executor = await town.executor()
    await town.until(payout, 'POSTED')
  },
)
