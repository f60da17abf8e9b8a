import { checkFencingToken, MAX_FENCING_TOKEN, type TokenCapability } from '@dlock/lock-api'
import type { Executor } from './execute.ts'
import { lockTimeout, statement } from './statement.ts'

/**
 * Life of a fencing token, step 2 of 8: is minted (store-postgres).
 *
 * By one sequence for every key. It is beside the grants and not in them: a number that lived in a
 * row would die with the row, and the next one would be an old one again (P-24). It never goes
 * back, and gaps mean nothing.
 *
 * A number only orders the grants of a key when it is taken while the key's row is locked. That
 * is so where a row is updated: PostgreSQL computes what it writes after it has the lock, and again
 * when the row was changed meanwhile. It is **not** so where a row is inserted: the number is taken
 * first, and a backend that stalls in between inserts an old number late. See `MINT_FOR_NEW_ROW`.
 */
export const MINT = `nextval('fencing_token_seq')`

/**
 * Takes this transaction's id before the token, so that whoever is about to insert an old number
 * can be seen: the sweeper removes a key's row, and with it what keeps an old number out, only when
 * every transaction that may have taken a lower one is over. `CASE` evaluates in this order.
 */
export const MINT_FOR_NEW_ROW: string = `CASE WHEN pg_current_xact_id() IS NOT NULL THEN ${MINT} END`

/** The driver hands over text; a `number` would round it (P-25). */
export function parseToken(text: string): bigint {
  return checkFencingToken(BigInt(text))
}

const HIGHEST = statement(
  'highest_token',
  'SELECT (CASE WHEN is_called THEN last_value ELSE last_value - 1 END)::text FROM fencing_token_seq',
)

export function tokens(executor: Executor): TokenCapability {
  const highestToken = async (): Promise<bigint> => {
    const [row] = await executor.run(HIGHEST, [])
    return BigInt(row?.[0] ?? 0)
  }
  return {
    highestToken,
    async advanceTokens(above) {
      if (checkFencingToken(above, 'above') === MAX_FENCING_TOKEN) {
        throw new RangeError(`above must be below ${MAX_FENCING_TOKEN}: no token would be left`)
      }
      await executor.runScript(advanceScript(above, executor.lockTimeout()))
      return highestToken()
    },
  }
}

/**
 * Between reading the sequence and setting it, others take numbers; a plain `setval` would give
 * those out a second time. `ALTER SEQUENCE`, which changes nothing here, waits for every
 * transaction that took a number and lets nobody take one until this transaction ends. Nor while
 * it waits, so it must give up by itself: a connection that is closed here goes on waiting there.
 */
function advanceScript(above: bigint, lockWaitMs: string): string {
  return `
    SELECT ${lockTimeout(`'${lockWaitMs}'`)};
    ALTER SEQUENCE fencing_token_seq NO CYCLE;
    SELECT setval('fencing_token_seq', ${above})
    FROM fencing_token_seq
    WHERE last_value < ${above} OR (last_value = ${above} AND NOT is_called)`
}
