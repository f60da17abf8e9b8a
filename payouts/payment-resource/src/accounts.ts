import { checkFloor, inTransaction } from '@dlock/guard'
import type {
  Account,
  NewAccount,
  NewPayout,
  Payout,
  PayoutPage,
  PayoutQuery,
} from '@dlock/messages'
import { Failure } from '@dlock/protocol'
import type pg from 'pg'
import { PAYOUT_COLUMNS, type PayoutRow, toPayout } from './payout-row.ts'

/** Opens an account: its opening balance is a ledger entry like any other, from the first row on. */
export async function createAccount(pool: pg.Pool, input: NewAccount): Promise<Account> {
  await inTransaction(pool, 2_500, async (client) => {
    const { accountId, currency, openingBalanceMinor } = input
    const { rows } = await client.query(
      `INSERT INTO account (account_id, currency, balance_minor) VALUES ($1, $2, $3)
       ON CONFLICT DO NOTHING RETURNING account_id`,
      [accountId, currency, openingBalanceMinor],
    )
    if (rows.length === 0 || openingBalanceMinor === 0) return
    await client.query(
      `INSERT INTO ledger_entry (transaction_id, leg, account_id, amount_minor, currency)
       VALUES ('opening:' || $1, 'CREDIT', $1, $3::bigint, $2),
              ('opening:' || $1, 'DEBIT', 'funding:' || $2, -$3::bigint, $2)`,
      [accountId, currency, openingBalanceMinor],
    )
  })
  const { rows } = await pool.query<{ currency: string; opening: string }>(
    `SELECT currency, coalesce((SELECT amount_minor FROM ledger_entry
        WHERE transaction_id = 'opening:' || $1 AND leg = 'CREDIT'), 0)::text AS opening
       FROM account WHERE account_id = $1`,
    [input.accountId],
  )
  const [row] = rows
  if (row?.currency !== input.currency || Number(row.opening) !== input.openingBalanceMinor) {
    throw conflict(`account ${input.accountId}`)
  }
  return getAccount(pool, input.accountId)
}

/** Balance and ledger sum of one moment: one statement, one snapshot. */
export async function getAccount(pool: pg.Pool, accountId: string): Promise<Account> {
  const { rows } = await pool.query<Record<string, string>>(
    `SELECT currency, balance_minor::text, reserved_minor::text, fence::text,
       (SELECT coalesce(sum(amount_minor), 0)::text FROM ledger_entry e
         WHERE e.account_id = a.account_id) AS ledger_sum
       FROM account a WHERE account_id = $1`,
    [accountId],
  )
  const [row] = rows
  if (row === undefined) throw new Failure('NOT_FOUND', `there is no account ${accountId}`)
  return {
    accountId,
    currency: row['currency'] ?? '',
    balanceMinor: Number(row['balance_minor']),
    reservedMinor: Number(row['reserved_minor']),
    ledgerSumMinor: Number(row['ledger_sum']),
    fence: row['fence'] ?? '0',
  }
}

/** Asks for a payout. The caller's id makes it idempotent: same content, same payout. */
export async function createPayout(pool: pg.Pool, input: NewPayout): Promise<Payout> {
  return (await createPayouts(pool, [input]))[0] as Payout
}

/** All of them or none, in one statement (FR-30 names who asked, in the event). */
export async function createPayouts(
  pool: pg.Pool,
  inputs: readonly NewPayout[],
): Promise<readonly Payout[]> {
  const columns = [
    inputs.map((input) => input.payoutId),
    inputs.map((input) => input.accountId),
    inputs.map((input) => input.amountMinor),
    inputs.map((input) => input.currency),
    inputs.map((input) => input.beneficiaryRef),
    inputs.map((input) => input.ownerId),
  ]
  return inTransaction(pool, 30_000, async (client) => {
    const { rows: unknown } = await client.query(
      `SELECT DISTINCT n.account_id FROM unnest($1::text[], $2::text[]) AS n (account_id, currency)
         LEFT JOIN account a ON a.account_id = n.account_id AND a.currency = n.currency
        WHERE a.account_id IS NULL LIMIT 5`,
      [columns[1], columns[3]],
    )
    if (unknown.length > 0) {
      const ids = (unknown as { account_id: string }[]).map((row) => row.account_id)
      throw new Failure('NOT_FOUND', `no account of that currency: ${ids.join(', ')}`)
    }
    await client.query(CREATE_PAYOUTS, columns)
    const { rows } = await client.query(
      `SELECT ${PAYOUT_COLUMNS} FROM unnest($1::text[]) WITH ORDINALITY AS n (payout_id, at)
         JOIN payout p USING (payout_id) ORDER BY at`,
      [columns[0]],
    )
    const made = (rows as PayoutRow[]).map(toPayout)
    made.forEach((payout, i) => {
      const input = inputs[i]
      const same = input !== undefined && CONTENT.every((name) => payout[name] === input[name])
      if (!same) throw conflict(`payout ${payout.payoutId}`)
    })
    return made
  })
}

const CONTENT = ['payoutId', 'accountId', 'amountMinor', 'currency', 'beneficiaryRef'] as const

const CREATE_PAYOUTS = `
WITH made AS (
  INSERT INTO payout (payout_id, account_id, amount_minor, currency, beneficiary_ref)
  SELECT payout_id, account_id, amount_minor, currency, beneficiary_ref
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[])
      WITH ORDINALITY AS n (payout_id, account_id, amount_minor, currency, beneficiary_ref, at)
   ORDER BY at
  ON CONFLICT DO NOTHING RETURNING payout_id
)
INSERT INTO payout_event (payout_id, event, to_state, actor, fence)
SELECT payout_id, 'create', 'PENDING', owner, 0
  FROM made JOIN unnest($1::text[], $6::text[]) AS n (payout_id, owner) USING (payout_id)`

export async function getPayout(pool: pg.Pool, payoutId: string): Promise<Payout> {
  const { rows } = await pool.query<PayoutRow>(
    `SELECT ${PAYOUT_COLUMNS} FROM payout p WHERE payout_id = $1`,
    [payoutId],
  )
  const [row] = rows
  if (row === undefined) throw new Failure('NOT_FOUND', `there is no payout ${payoutId}`)
  return toPayout(row)
}

export async function listPayouts(pool: pg.Pool, query: PayoutQuery): Promise<PayoutPage> {
  const limit = query.limit ?? 100
  const { rows } = await pool.query<PayoutRow>(
    `SELECT ${PAYOUT_COLUMNS} FROM payout p
      WHERE sequence > $1::bigint AND ($2::text IS NULL OR state = $2)
        AND ($3::text IS NULL OR account_id = $3)
      ORDER BY p.sequence LIMIT $4`,
    [query.cursor ?? '0', query.state ?? null, query.accountId ?? null, limit],
  )
  const last = rows.length === limit ? rows.at(-1)?.sequence : undefined
  return { items: rows.map(toPayout), ...(last !== undefined && { nextCursor: last }) }
}

/** Raises an account's fence to a floor (decision 5); never lowers it. */
export async function advanceAccountFence(
  pool: pg.Pool,
  accountId: string,
  floor: bigint,
): Promise<bigint> {
  checkFloor(floor)
  const { rows } = await pool.query<{ fence: string }>(
    `UPDATE account SET fence = greatest(fence, $2::bigint) WHERE account_id = $1
     RETURNING fence::text`,
    [accountId, floor.toString()],
  )
  const [row] = rows
  if (row === undefined) throw new Failure('NOT_FOUND', `there is no account ${accountId}`)
  return BigInt(row.fence)
}

function conflict(what: string): Failure {
  return new Failure('IDEMPOTENCY_CONFLICT', `${what} exists with other content`)
}
