import { inTransaction } from '@dlock/guard'
import { FINAL_STATES, type Payout, type PayoutState } from '@dlock/messages'
import type pg from 'pg'
import { PAYOUT_COLUMNS, type PayoutRow, toPayout } from './payout-row.ts'

/** A change that needs no lock: no holder may move a payout that is in the state it starts from. */
export interface Decision {
  readonly payoutId: string
  readonly from: 'PENDING' | 'RAIL_AMBIGUOUS'
  readonly to: PayoutState
  readonly event: 'cancel' | 'abandon' | 'settled' | 'not_found'
  readonly actor: string
  readonly reason: string
  readonly railReference?: string
}

/**
 * What an operator or the rail's own evidence decides (FR-23, FR-24). It is serialized with the
 * holders' writes by the account's row, and recorded under the fence that the account has then:
 * nobody's token is needed, because this runs inside the guard (INV-01).
 *
 * @returns the payout as it is now; `undefined` when it was not in the state decided from
 */
export async function decide(pool: pg.Pool, decision: Decision): Promise<Payout | undefined> {
  const { payoutId, from, to, event, actor, reason, railReference } = decision
  const freed = from === 'RAIL_AMBIGUOUS' && FINAL_STATES.includes(to)
  class NothingDecided extends Error {}
  try {
    return await inTransaction(pool, 2_500, async (client) => {
      const values = [payoutId, from, to, freed, event, actor, reason, railReference ?? null]
      const { rows } = await client.query(DECIDE, values)
      const [row] = rows as PayoutRow[]
      if (row === undefined) throw new NothingDecided()
      return toPayout(row)
    })
  } catch (error) {
    if (error instanceof NothingDecided) return undefined
    throw error
  }
}

const DECIDE = `
WITH locked AS (
  UPDATE account a
     SET reserved_minor = a.reserved_minor - CASE WHEN $4::boolean THEN p.amount_minor ELSE 0 END
    FROM payout p
   WHERE p.payout_id = $1 AND a.account_id = p.account_id AND p.state = $2
  RETURNING a.fence
), written AS (
  UPDATE payout p
     SET state = $3, reason = $7, rail_reference = coalesce($8, p.rail_reference), updated_at = now()
    FROM locked
   WHERE p.payout_id = $1 AND p.state = $2
  RETURNING p.*
), noted AS (
  INSERT INTO payout_event (payout_id, event, to_state, actor, fence, detail)
  SELECT payout_id, $5, state, $6, fence, $7 FROM written, locked
)
SELECT ${PAYOUT_COLUMNS} FROM written p`
