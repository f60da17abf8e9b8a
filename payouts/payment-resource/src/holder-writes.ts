import type { Refused } from '@dlock/guard'
import { admits, continues, inTransaction } from '@dlock/guard'
import {
  type Claim,
  lockKeyOf,
  type MarkSubmitted,
  type Payout,
  type PayoutState,
  type Post,
  type RecordOutcome,
} from '@dlock/messages'
import type pg from 'pg'
import { ADMISSION, CONTINUATION, STAMP } from './fencing-token.ts'
import { PAYOUT_COLUMNS, type PayoutRow, toPayout } from './payout-row.ts'

/** What a holder's write came to. Only `done` changed anything, or found it done by this grant. */
export type Written =
  | { readonly kind: 'done'; readonly payout: Payout }
  | { readonly kind: 'fenced-out'; readonly refused: Refused; readonly accountId: string }
  | { readonly kind: 'not-claimable'; readonly payout: Payout; readonly why: string }
  | { readonly kind: 'not-found' }

/** The connection, and whether fencing is enforced: `false` in the experiment only (FR-29). */
export interface Guarded {
  readonly pool: pg.Pool
  readonly fencing: boolean
}

/**
 * The admission (decision 4). A PENDING payout becomes CLAIMED and its amount is set aside, or
 * FAILED when the account does not have it; one that is under way is taken over and keeps its
 * state. Two payouts of one account cannot spend the same money: what is set aside is no longer
 * there, and a claim that only fails for that reason leaves the payout PENDING for later.
 */
export function claim(guarded: Guarded, input: Claim): Promise<Written> {
  return write(guarded, input, {
    statement: CLAIM,
    values: [input.expectedState, input.ownerId],
    rule: admits,
    reached: input.expectedState === 'PENDING' ? ['CLAIMED', 'FAILED'] : [input.expectedState],
  })
}

/** The reason of a payout that failed at its claim. */
export const WITHOUT_FUNDS = 'insufficient funds'

const CLAIM = `
WITH admitted AS (
  UPDATE account a
     SET ${STAMP},
         reserved_minor = a.reserved_minor +
           CASE WHEN $4 = 'PENDING' AND a.balance_minor >= p.amount_minor
                THEN p.amount_minor ELSE 0 END
    FROM payout p
   WHERE p.payout_id = $1 AND a.account_id = p.account_id AND ${ADMISSION}
     AND ($4 <> 'PENDING' OR a.balance_minor < p.amount_minor
          OR a.balance_minor - a.reserved_minor >= p.amount_minor)
  RETURNING a.fence, a.balance_minor >= p.amount_minor AS funded
), written AS (
  UPDATE payout p
     SET state = CASE WHEN $4 <> 'PENDING' THEN $4 WHEN funded THEN 'CLAIMED' ELSE 'FAILED' END,
         reason = CASE WHEN $4 = 'PENDING' AND NOT funded THEN '${WITHOUT_FUNDS}' END,
         claimed_by = $5, claim_token = $2::bigint, updated_at = now()
    FROM admitted
   WHERE p.payout_id = $1 AND p.state = $4
  RETURNING p.*, CASE WHEN p.state = 'FAILED' THEN 'claim_without_funds' ELSE 'claim' END AS event
), noted AS (
  INSERT INTO payout_event (payout_id, event, to_state, actor, fence)
  SELECT payout_id, event, state, $5, fence FROM written, admitted
)
SELECT ${PAYOUT_COLUMNS} FROM written p`

/** CLAIMED → RAIL_SUBMITTED: from here on the rail may have been asked. */
export function markSubmitted(guarded: Guarded, input: MarkSubmitted): Promise<Written> {
  return write(guarded, input, {
    statement: continuation({
      from: 'CLAIMED',
      set: `state = 'RAIL_SUBMITTED', submission_id = $5`,
      event: `'submit'`,
    }),
    values: [input.ownerId, input.submissionId],
    rule: continues,
    reached: ['RAIL_SUBMITTED'],
    submissionId: input.submissionId,
  })
}

/** RAIL_SUBMITTED → what the rail's answer means; only for the submission that was marked. */
export function recordOutcome(guarded: Guarded, input: RecordOutcome): Promise<Written> {
  const { to, event } = OUTCOMES[input.railOutcome]
  return write(guarded, input, {
    statement: continuation({
      from: 'RAIL_SUBMITTED',
      where: 'AND p.submission_id = $5',
      set: `state = '${to}', rail_reference = coalesce($6, p.rail_reference)`,
      account: to === 'FAILED' ? ', reserved_minor = a.reserved_minor - p.amount_minor' : '',
      event: `'${event}'`,
    }),
    values: [input.ownerId, input.submissionId, input.railReference ?? null],
    rule: continues,
    reached: [to],
    submissionId: input.submissionId,
  })
}

const OUTCOMES = {
  ACKED: { to: 'RAIL_ACKED', event: 'rail_acked' },
  REJECTED: { to: 'FAILED', event: 'rail_rejected' },
  NOT_PRESENTED: { to: 'CLAIMED', event: 'rail_not_presented' },
  AMBIGUOUS: { to: 'RAIL_AMBIGUOUS', event: 'rail_ambiguous' },
} as const

/** RAIL_ACKED → POSTED: two entries, the balance and the payout, all of it or nothing (FR-25). */
export function post(guarded: Guarded, input: Post): Promise<Written> {
  return write(guarded, input, {
    statement: continuation({
      from: 'RAIL_ACKED',
      where: 'AND p.submission_id = $5 AND p.rail_reference = $6',
      set: `state = 'POSTED'`,
      account: `, balance_minor = a.balance_minor - p.amount_minor,
                  reserved_minor = a.reserved_minor - p.amount_minor`,
      event: `'post'`,
      also: `, booked AS (
        INSERT INTO ledger_entry (transaction_id, leg, account_id, amount_minor, currency)
        SELECT 'payout:' || payout_id, leg, account, amount, currency FROM written,
          LATERAL (VALUES ('DEBIT', account_id, -amount_minor),
                          ('CREDIT', 'clearing:' || currency, amount_minor))
                  AS legs (leg, account, amount))`,
    }),
    values: [input.ownerId, input.submissionId, input.railReference],
    rule: continues,
    reached: ['POSTED'],
    submissionId: input.submissionId,
  })
}

/** A later write of the admitted grant; see `write` for what zero rows mean. */
function continuation(change: {
  readonly from: PayoutState
  readonly where?: string
  readonly set: string
  /** More of what becomes of the account. */
  readonly account?: string
  readonly event: string
  readonly also?: string
}): string {
  return `
WITH admitted AS (
  UPDATE account a SET ${STAMP} ${change.account ?? ''}
    FROM payout p
   WHERE p.payout_id = $1 AND a.account_id = p.account_id AND ${CONTINUATION}
     AND p.state = '${change.from}'
  RETURNING a.fence
), written AS (
  UPDATE payout p SET ${change.set}, claim_token = $2::bigint, updated_at = now()
    FROM admitted
   WHERE p.payout_id = $1 AND p.state = '${change.from}' ${change.where ?? ''}
  RETURNING p.*
), noted AS (
  INSERT INTO payout_event (payout_id, event, to_state, actor, fence, detail)
  SELECT payout_id, ${change.event}, state, $4, fence, submission_id FROM written, admitted
) ${change.also ?? ''}
SELECT ${PAYOUT_COLUMNS} FROM written p`
}

interface HolderWrite {
  readonly statement: string
  /** From `$4` on. */
  readonly values: readonly unknown[]
  readonly rule: (fence: bigint, token: bigint) => boolean
  /** Where the payout stands when this very write has been made before. */
  readonly reached: readonly PayoutState[]
  readonly submissionId?: string
}

/** Why the transaction was rolled back: the statement matched the account's row but not all of it. */
class NothingWritten extends Error {}

/**
 * One statement, one transaction. Zero rows: rolled back, then one read to tell why. Never a second
 * try with another token.
 */
async function write(
  { pool, fencing }: Guarded,
  input: { readonly payoutId: string; readonly fencingToken: string; readonly ownerId: string },
  change: HolderWrite,
): Promise<Written> {
  try {
    return await inTransaction(pool, STATEMENT_TIMEOUT_MS, async (client) => {
      const { rows } = await client.query(change.statement, [
        input.payoutId,
        input.fencingToken,
        fencing,
        ...change.values,
      ])
      const [row] = rows as PayoutRow[]
      if (row === undefined) throw new NothingWritten()
      return { kind: 'done', payout: toPayout(row) }
    })
  } catch (error) {
    if (!(error instanceof NothingWritten)) throw error
    return diagnose({ pool, fencing }, input, change)
  }
}

const STATEMENT_TIMEOUT_MS = 2_500

async function diagnose(
  { pool, fencing }: Guarded,
  input: { readonly payoutId: string; readonly fencingToken: string; readonly ownerId: string },
  change: HolderWrite,
): Promise<Written> {
  const { rows } = await pool.query<PayoutRow & { fence: string }>(
    `SELECT ${PAYOUT_COLUMNS}, a.fence::text
       FROM payout p JOIN account a USING (account_id) WHERE p.payout_id = $1`,
    [input.payoutId],
  )
  const [row] = rows
  if (row === undefined) return { kind: 'not-found' }
  const payout = toPayout(row)
  const token = BigInt(input.fencingToken)
  const fence = BigInt(row.fence)
  const isReplay =
    fence === token &&
    row.claim_token === input.fencingToken &&
    row.claimed_by === input.ownerId &&
    change.reached.includes(row.state) &&
    (change.submissionId === undefined || change.submissionId === row.submission_id)
  if (isReplay) return { kind: 'done', payout }
  if (fencing && !change.rule(fence, token)) {
    const key = lockKeyOf(row.account_id)
    const refused = { passed: false, key, presentedToken: token, storedToken: fence } as const
    return { kind: 'fenced-out', refused, accountId: row.account_id }
  }
  const why =
    change.rule === admits && row.state === 'PENDING'
      ? 'its money is set aside for payouts that are under way'
      : `it is ${row.state}`
  return { kind: 'not-claimable', payout, why }
}
