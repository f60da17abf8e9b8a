import {
  idempotencyKeyOf,
  paymentOperations as payments,
  railOperations as rail,
} from '@dlock/messages'
import type pg from 'pg'
import { expect, test } from 'vitest'
import { Town } from './town.ts'

/** As somebody with the database's password could: past the triggers that forbid it. */
async function behindTheBack(pool: pg.Pool, statement: string): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('SET session_replication_role = replica')
    await client.query(statement)
    await client.query('RESET session_replication_role')
  } finally {
    client.release()
  }
}

test('FR-26: nothing to report is a report; each broken record is found, and not repaired', async () => {
  await using town = await Town.open({ PAYMENT_SETTLEMENT_WINDOW: '0ms' })
  const payout = await town.payout()
  {
    await using _executor = await town.executor()
    await town.until(payout, 'POSTED')
  }
  expect(await town.reconcile()).toEqual({
    checkedAccounts: 1,
    checkedPayouts: 1,
    resolved: [],
    discrepancies: [],
  })
  const kinds = async (): Promise<string[]> => {
    const { discrepancies } = await town.reconcile()
    return discrepancies.map(({ kind }) => kind).sort()
  }

  await town.paydb.query('UPDATE account SET balance_minor = balance_minor + 1')
  expect(await kinds(), 'a balance nudged by one').toEqual(['balance_is_not_sum'])
  await town.paydb.query('UPDATE account SET balance_minor = balance_minor - 1')

  await town.paydb.query('UPDATE account SET reserved_minor = 1')
  expect(await kinds(), 'set aside for nothing').toEqual(['reserved_is_not_sum'])
  await town.paydb.query('UPDATE account SET reserved_minor = 0')

  await behindTheBack(
    town.paydb,
    `DELETE FROM ledger_entry WHERE transaction_id LIKE 'payout:%' AND leg = 'CREDIT'`,
  )
  expect(await kinds(), 'one ledger leg deleted').toEqual(['transaction_unbalanced'])
  await behindTheBack(town.paydb, `DELETE FROM ledger_entry WHERE transaction_id LIKE 'payout:%'`)
  expect(await kinds(), 'both deleted').toEqual(['balance_is_not_sum', 'transaction_unbalanced'])

  // The rail was asked behind the proxy's back.
  const body = JSON.stringify({ clientRef: payout.payoutId, amountMinor: 100, currency: 'EUR' })
  const headers = { 'content-type': 'application/json' }
  await fetch(`${town.railUrl}/submit`, { method: 'POST', headers, body })
  expect(await kinds()).toContain('duplicate_submission')
  await town.paydb.query(`UPDATE payout SET state = 'FAILED'`)
  expect(await kinds()).toContain('submission_without_ledger')
})

test('FR-24: "nothing there" decides only after the settlement window', async () => {
  const ambiguous = async (town: Town) => {
    await town.faults({ failureRate: 1 })
    const payout = await town.payout()
    await using _executor = await town.executor()
    await town.until(payout, 'RAIL_AMBIGUOUS')
    return payout
  }
  {
    await using town = await Town.open({ PAYMENT_AMBIGUOUS_LIMIT: '0ms' })
    const payout = await ambiguous(town)
    expect(await town.reconcile()).toMatchObject({
      resolved: [],
      discrepancies: [{ kind: 'ambiguous_too_long', payoutId: payout.payoutId }],
    })
  }
  await using town = await Town.open({ PAYMENT_SETTLEMENT_WINDOW: '0ms' })
  const payout = await ambiguous(town)
  expect((await town.reconcile()).resolved).toEqual([
    { payoutId: payout.payoutId, state: 'FAILED' },
  ])
  const account = await town.ask(payments.getAccount, { accountId: payout.accountId })
  expect(account).toMatchObject({ balanceMinor: 1_000, reservedMinor: 0 })
})

test('P-27: an ambiguous payout is judged only after its late request is shut out at the proxy', async () => {
  await using town = await Town.open({ PAYMENT_SETTLEMENT_WINDOW: '0ms' })
  const { payoutId, accountId } = await town.payout()
  const by = {
    payoutId,
    ownerId: 'w',
    fencingToken: '7',
    idempotencyKey: idempotencyKeyOf(payoutId),
  }
  await town.ask(payments.claim, { ...by, expectedState: 'PENDING' })
  await town.ask(payments.submitted, { ...by, submissionId: 's' })
  // The worker's request to the proxy is still in the network when it gives up.
  await town.ask(payments.outcome, { ...by, submissionId: 's', railOutcome: 'AMBIGUOUS' })
  expect((await town.reconcile()).resolved).toEqual([{ payoutId, state: 'FAILED' }])
  const late = { ...by, accountId, amountMinor: 100, currency: 'EUR', beneficiaryRef: 'b' }
  await expect(town.ask(rail.submit, late, town.proxyUrl)).rejects.toThrow('FENCED_OUT')
})
