import {
  call,
  IN_FLIGHT_STATES,
  type Payout,
  type PayoutState,
  type RailTransfer,
  railOperations,
  type SubmissionRecord,
} from '@dlock/messages'
import type pg from 'pg'
import { getPayout } from './accounts.ts'
import { decide } from './decisions.ts'
import { PAYOUT_COLUMNS, type PayoutRow, toPayout } from './payout-row.ts'

export type DiscrepancyKind =
  | 'duplicate_submission'
  | 'submission_without_ledger'
  | 'ledger_without_submission'
  | 'balance_is_not_sum'
  | 'reserved_is_not_sum'
  | 'transaction_unbalanced'
  | 'ambiguous_too_long'
  | 'two_payouts_in_flight'
  | 'rail_not_reachable'

export interface Discrepancy {
  readonly kind: DiscrepancyKind
  readonly payoutId?: string
  readonly accountId?: string
  readonly detail: string
}

export interface Reconciliation {
  readonly checkedPayouts: number
  readonly checkedAccounts: number
  readonly resolved: readonly { readonly payoutId: string; readonly state: PayoutState }[]
  readonly discrepancies: readonly Discrepancy[]
}

export interface ReconcilerParts {
  readonly pool: pg.Pool
  readonly railProxyUrl: string
  /** How long the rail's look-up may lag behind; only then does "nothing there" mean nothing. */
  readonly settlementWindowMs: number
  readonly ambiguousLimitMs: number
}

/**
 * Compares payouts, the proxy's submissions, the rail's own look-up and the ledger, and reports
 * (FR-26). It resolves an ambiguous payout, from the rail's evidence alone (FR-24), and repairs
 * nothing else. An empty report is a report.
 */
export async function reconcile(parts: ReconcilerParts): Promise<Reconciliation> {
  const found: Discrepancy[] = await ledgerDiscrepancies(parts)
  const resolved: { payoutId: string; state: PayoutState }[] = []
  const payouts = await startedPayouts(parts.pool)
  await inParallel(payouts, async (row) => {
    const payout = toPayout(row)
    const rail = await evidenceOf(parts.railProxyUrl, payout)
    if (rail === undefined) {
      found.push({
        kind: 'rail_not_reachable',
        payoutId: payout.payoutId,
        detail: 'neither confirmed nor denied',
      })
      return
    }
    const state = await resolveAmbiguous(parts, payout, rail, row.age_ms)
    if (state !== undefined) resolved.push({ payoutId: payout.payoutId, state })
    const after = await getPayout(parts.pool, payout.payoutId)
    found.push(...compare(parts, payout, after, rail, row.age_ms))
  })
  const { rows } = await parts.pool.query<{ n: number }>('SELECT count(*)::int AS n FROM account')
  return {
    checkedPayouts: payouts.length,
    checkedAccounts: rows[0]?.n ?? 0,
    resolved,
    discrepancies: found,
  }
}

interface RailEvidence {
  readonly submissions: readonly SubmissionRecord[]
  readonly transfers: readonly RailTransfer[]
}

/** An ambiguous payout's record is read only after its proxy can admit no older token (P-27). */
async function evidenceOf(base: string, payout: Payout): Promise<RailEvidence | undefined> {
  const { payoutId, accountId, claimToken } = payout
  const limits = { timeoutMs: 3_000, retries: 2 }
  if (payout.state === 'RAIL_AMBIGUOUS' && claimToken !== undefined) {
    const floor = { ownerId: 'reconciler', accountId, floor: claimToken }
    const raised = await call(base, railOperations.advance, floor, limits)
    if (raised.kind !== 'ok') return undefined
  }
  const [submissions, transfers] = await Promise.all([
    call(base, railOperations.submissions, { payoutId }, limits),
    call(base, railOperations.transfers, { payoutId }, limits),
  ])
  if (submissions.kind !== 'ok' || transfers.kind !== 'ok') return undefined
  return { submissions: submissions.output.items, transfers: transfers.output.items }
}

async function resolveAmbiguous(
  { pool, settlementWindowMs }: ReconcilerParts,
  payout: Payout,
  { transfers }: RailEvidence,
  ageMs: number,
): Promise<PayoutState | undefined> {
  if (payout.state !== 'RAIL_AMBIGUOUS') return undefined
  const base = { payoutId: payout.payoutId, from: 'RAIL_AMBIGUOUS', actor: 'reconciler' } as const
  const [transfer, second] = transfers
  if (transfer !== undefined && second === undefined) {
    const { railReference } = transfer
    const reason = 'the rail has settled it'
    const decision = { ...base, to: 'RAIL_ACKED', event: 'settled', reason, railReference } as const
    return (await decide(pool, decision))?.state
  }
  if (transfer === undefined && ageMs > settlementWindowMs) {
    const reason = 'the rail knows nothing of it after the settlement window'
    return (await decide(pool, { ...base, to: 'FAILED', event: 'not_found', reason }))?.state
  }
  return undefined
}

/**
 * While payouts go on, what was read first is older. Money that is seen to have left must show in
 * the payout as it is *after* that; what a payout claims *before* must show at the rail.
 */
function compare(
  { settlementWindowMs, ambiguousLimitMs }: ReconcilerParts,
  before: Payout,
  { payoutId, state }: Payout,
  { submissions, transfers }: RailEvidence,
  ageMs: number,
): Discrepancy[] {
  const found: Discrepancy[] = []
  const note = (kind: DiscrepancyKind, detail: string): void => {
    found.push({ kind, payoutId, detail })
  }
  const acked = submissions.some(({ outcome }) => outcome === 'ACKED')
  if (transfers.length > 1)
    note('duplicate_submission', `${transfers.length} transfers at the rail`)
  const left = acked || transfers.length > 0
  if (left && (state === 'FAILED' || state === 'ABANDONED' || state === 'CLAIMED')) {
    note('submission_without_ledger', `money left, and the payout is ${state}`)
  }
  const settled = ageMs > settlementWindowMs
  if (before.state === 'POSTED' && ((transfers.length === 0 && settled) || !left)) {
    note('ledger_without_submission', 'booked, and the rail knows nothing of it')
  }
  if (state === 'RAIL_AMBIGUOUS' && ageMs > ambiguousLimitMs) {
    note('ambiguous_too_long', `for ${Math.round(ageMs / 1_000)} s`)
  }
  return found
}

/** What SQL alone can see: all of one moment each. */
async function ledgerDiscrepancies({ pool }: ReconcilerParts): Promise<Discrepancy[]> {
  const { rows } = await pool.query<Discrepancy>(
    `WITH ledger AS (SELECT account_id, sum(amount_minor) AS total FROM ledger_entry GROUP BY 1),
      flying AS (SELECT account_id, count(*) AS n, sum(amount_minor) AS total
                   FROM payout WHERE state = ANY($1) GROUP BY 1)
     SELECT 'balance_is_not_sum' AS kind, a.account_id AS "accountId", NULL AS "payoutId",
            format('balance %s, entries %s', balance_minor, coalesce(total, 0)) AS detail
       FROM account a LEFT JOIN ledger USING (account_id)
      WHERE balance_minor <> coalesce(total, 0)
     UNION ALL
     SELECT 'reserved_is_not_sum', a.account_id, NULL,
            format('reserved %s, in flight %s', reserved_minor, coalesce(total, 0))
       FROM account a LEFT JOIN flying USING (account_id)
      WHERE reserved_minor <> coalesce(total, 0)
     UNION ALL
     SELECT 'two_payouts_in_flight', account_id, NULL, format('%s payouts', n)
       FROM flying WHERE n > 1
     UNION ALL
     SELECT 'transaction_unbalanced', NULL, NULL,
            format('%s: %s entries, sum %s', transaction_id, count(*), sum(amount_minor))
       FROM ledger_entry GROUP BY transaction_id
     HAVING count(*) <> 2 OR sum(amount_minor) <> 0
     UNION ALL
     SELECT 'transaction_unbalanced', p.account_id, p.payout_id, 'POSTED without entries'
       FROM payout p WHERE state = 'POSTED' AND NOT EXISTS
         (SELECT 1 FROM ledger_entry e WHERE e.transaction_id = 'payout:' || p.payout_id)`,
    [IN_FLIGHT_STATES],
  )
  return rows.map(({ kind, accountId, payoutId, detail }) => ({
    kind,
    detail,
    ...(accountId && { accountId }),
    ...(payoutId && { payoutId }),
  }))
}

async function startedPayouts(pool: pg.Pool): Promise<(PayoutRow & { age_ms: number })[]> {
  const { rows } = await pool.query<PayoutRow & { age_ms: number }>(
    `SELECT ${PAYOUT_COLUMNS},
            (extract(epoch FROM clock_timestamp() - updated_at) * 1000)::float AS age_ms
       FROM payout p WHERE claim_token IS NOT NULL ORDER BY p.sequence`,
  )
  return rows
}

const LANES = 8

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = items.values()
  const lane = async (): Promise<void> => {
    for (const item of queue) await work(item)
  }
  await Promise.all(Array.from({ length: LANES }, lane))
}
