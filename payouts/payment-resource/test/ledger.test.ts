import { paymentOperations as operations } from '@dlock/messages'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PaymentDesk } from './payment-desk.ts'

let desk: PaymentDesk
beforeAll(async () => {
  desk = await PaymentDesk.open()
})
afterAll(() => desk[Symbol.asyncDispose]())

test('FR-25: balance = sum of entries, from the first row on and after a post', async () => {
  const { accountId } = await desk.inState('POSTED')
  expect(await desk.ask(operations.getAccount, { accountId })).toMatchObject({
    output: { balanceMinor: 900, ledgerSumMinor: 900, reservedMinor: 0 },
  })
  const { rows } = await desk.pool.query('SELECT sum(amount_minor)::text AS sum FROM ledger_entry')
  expect(rows).toEqual([{ sum: '0' }])
})

test('FR-25: a partial set of entries never commits, and the ledger is append-only', async () => {
  await expect(
    desk.pool.query(
      `INSERT INTO ledger_entry (transaction_id, leg, account_id, amount_minor, currency)
       VALUES ('half', 'DEBIT', 'acc', -1, 'EUR')`,
    ),
  ).rejects.toThrow(/does not balance/)
  await expect(desk.pool.query('DELETE FROM ledger_entry')).rejects.toThrow(/append-only/)
  await expect(desk.pool.query('UPDATE ledger_entry SET amount_minor = 1')).rejects.toThrow(
    /append-only/,
  )
})

test('creation is idempotent by content', async () => {
  const accountId = await desk.account()
  const content = { accountId, amountMinor: 100, currency: 'EUR', beneficiaryRef: 'ben-1' }
  const create = (change: object): Promise<string> => {
    const input = { ownerId: 'test', payoutId: 'idem-1', ...content, ...change }
    return desk.codeOf(desk.ask(operations.createPayout, input))
  }
  expect(await create({})).toBe('PENDING')
  expect(await create({})).toBe('PENDING')
  expect(await create({ amountMinor: 101 })).toBe('IDEMPOTENCY_CONFLICT')
  expect(await create({ payoutId: 'idem-2', accountId: 'nobody' })).toBe('NOT_FOUND')
  expect(await create({ payoutId: 'idem-2', amountMinor: 1.5 })).toBe('VALIDATION_FAILED')
  const account = { ownerId: 'test', accountId, currency: 'EUR', openingBalanceMinor: 1 }
  expect(await desk.ask(operations.createAccount, account)).toMatchObject({
    envelope: { code: 'IDEMPOTENCY_CONFLICT' },
  })
})

const importFile = async (text: string): Promise<{ status: number; answer: unknown }> => {
  const headers = { 'content-type': 'text/csv', 'x-owner-id': 'importer' }
  const response = await fetch(`${desk.url}/v1/payouts/import`, {
    method: 'POST',
    headers,
    body: text,
  })
  return { status: response.status, answer: await response.json() }
}

test('a CSV file is imported whole or not at all, and again without effect', async () => {
  const accountId = await desk.account(1_000_000)
  const header = 'payoutId,accountId,amountMinor,currency,beneficiaryRef'
  const lines = Array.from(
    { length: 1_000 },
    (_, i) => `csv-${i},${accountId},${i + 1},EUR,ben-${i}`,
  )
  const file = [header, ...lines].join('\r\n')
  expect(await importFile(file)).toEqual({ status: 200, answer: { accepted: 1_000 } })
  expect(await importFile(file)).toEqual({ status: 200, answer: { accepted: 1_000 } })
  const count = async (): Promise<number> => {
    const { rows } = await desk.pool.query(
      'SELECT count(*)::int AS n FROM payout WHERE account_id = $1',
      [accountId],
    )
    return (rows as { n: number }[])[0]?.n ?? 0
  }
  expect(await count()).toBe(1_000)

  const bad = [
    header,
    `new-1,${accountId},1,EUR,b`,
    `new-2,${accountId},1e3,EUR,b`,
    `new-3,${accountId},007,EUR,b`,
    `new-1,${accountId},1,EUR,b`,
    `new-4,${accountId},1,EUR,"b",c`,
  ].join('\n')
  const { status, answer } = await importFile(bad)
  expect(status).toBe(400)
  const fields = (answer as { details: { fields: { field: string }[] } }).details.fields
  expect(new Set(fields.map(({ field }) => field))).toEqual(
    new Set(['line 3', 'line 4', 'line 5', 'line 6']),
  )
  expect(await count()).toBe(1_000)
  expect((await importFile('wrong header')).status).toBe(400)
})

test('listing is paged, filtered, and complete', async () => {
  const accountId = await desk.account()
  const made: string[] = []
  // Across a place where the order of numbers and the order of their spellings differ (P-25).
  await desk.pool.query('ALTER TABLE payout ALTER sequence RESTART WITH 9998')
  for (let i = 0; i < 5; i += 1) made.push(await desk.payout(accountId, 1))
  const seen: string[] = []
  let cursor: string | undefined
  do {
    const query = { accountId, limit: 2, ...(cursor !== undefined && { cursor }) }
    const page = await desk.ask(operations.listPayouts, query)
    if (page.kind !== 'ok') throw new Error(JSON.stringify(page))
    seen.push(...page.output.items.map(({ payoutId }) => payoutId))
    cursor = page.output.nextCursor
  } while (cursor !== undefined)
  expect(seen).toEqual(made)
})

test('metrics carry no id: every label value is of its closed set', async () => {
  await desk.inState('POSTED')
  const text = await (await fetch(`${desk.url}/metrics`)).text()
  const values = [...text.matchAll(/\{([^}]*)\}/g)].flatMap(([, labels = '']) =>
    [...labels.matchAll(/="([^"]*)"/g)].map(([, value]) => value),
  )
  expect(new Set(values)).toEqual(new Set(['account', 'ledger']))
})

test('health: alive and ready', async () => {
  expect((await fetch(`${desk.url}/livez`)).status).toBe(200)
  expect((await fetch(`${desk.url}/readyz`)).status).toBe(200)
})
