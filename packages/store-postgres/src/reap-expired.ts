import { checkInstant } from '@dlock/lock-api'
import { type Executor, type Row, toldOf } from './execute.ts'
import { VACANT } from './live.ts'
import { lockTimeout, statement } from './statement.ts'
import { refreshStatistics } from './statistics.ts'
import { StatementFailure } from './translate-error.ts'

/** For so long a dead session is answered with "expired", and then with "unknown". */
const REMEMBER_DEAD_SESSION = `interval '10 minutes'`
/** One sweep looks at so many pages of the table; of a larger one, at a part each time. */
const PAGES_PER_SWEEP = 4_096
/**
 * Callers lock rows in the order of their keys and a sweep does not, so each may wait for the other.
 * The sweep gives way, and soon.
 */
const LOCK_WAIT_MS = '100'

/**
 * Reads the highest token first and takes a transaction id after it. Whoever may still insert a
 * token up to that one took an id before the token (`MINT_FOR_NEW_ROW`), so has a lower id than this.
 */
const MARK = statement(
  'mark',
  `
  SELECT last_value::text,
    CASE WHEN last_value IS NOT NULL THEN pg_current_xact_id()::text END,
    pg_snapshot_xmin(pg_current_snapshot())::text
  FROM fencing_token_seq`,
)

/** By the store's clock and by the caller's: a caller whose clock runs ahead reaps nothing alive. */
const LIMIT = 'LEAST(now(), to_timestamp($1::float8 / 1000))'
const IN_SLICE = 'e.ctid >= $2::tid AND e.ctid < $3::tid'

/**
 * `$1` the caller's instant in milliseconds, `$2` and `$3` the slice's pages, `$4` the highest token
 * of a row that can go, `$5` the limit on lock waits.
 */
const SWEEP = statement(
  'sweep',
  `
  WITH buried AS (
    UPDATE lock_session SET expires_at = ${VACANT}, ended_at = now() FROM ${lockTimeout('$5')}
    WHERE expires_at <= ${LIMIT} AND ended_at IS NULL
    RETURNING session_id
  ), ended AS (
    UPDATE lock_entry AS e SET expires_at = ${VACANT}
    WHERE e.expires_at > ${VACANT} AND e.session_id IN (SELECT session_id FROM buried)
    RETURNING 1
  ), expired AS (
    UPDATE lock_entry AS e SET expires_at = ${VACANT} FROM ${lockTimeout('$5')}
    WHERE ${IN_SLICE} AND e.expires_at > ${VACANT} AND e.expires_at <= ${LIMIT}
      AND e.session_id NOT IN (SELECT session_id FROM buried)
    RETURNING 1
  ), removed AS (
    DELETE FROM lock_entry AS e USING ${lockTimeout('$5')}
    WHERE ${IN_SLICE} AND e.expires_at = ${VACANT} AND e.fencing_token <= $4::bigint
  ), forgotten AS (
    DELETE FROM lock_session WHERE ended_at < ${LIMIT} - ${REMEMBER_DEAD_SESSION}
  )
  SELECT ((SELECT count(*) FROM ended) + (SELECT count(*) FROM expired))::text,
    (pg_relation_size('lock_entry') / current_setting('block_size')::bigint)::text`,
)

/**
 * Clears away. Three things go on at once: sessions that died are buried, and their grants end;
 * expired grants end; and vacant rows are removed, but late.
 *
 * While a key's row is there, a statement that took a token before a later grant of the key was
 * made finds the row, and mints anew. Without the row it would insert the old token (see
 * `fencing-token.ts`). So a row goes only when its token was already the past at some mark, and
 * every transaction that was running at that mark is over. There is no timing in this: a backend
 * may be stopped for an hour.
 */
export class Sweeper {
  readonly #executor: Executor
  #nextPage = 0
  /** Rows with tokens up to this can go. */
  #settledToken = '0'
  /** When all transactions before this one are over, its token becomes the settled one. */
  #mark: { readonly token: string; readonly transactionId: bigint } | undefined

  constructor(executor: Executor) {
    this.#executor = executor
  }

  /** @returns how many grants ended by it */
  async reapExpired(now: Date): Promise<number> {
    const nowMs = checkInstant(now, 'now')
    await this.#moveMark()
    const from = this.#nextPage
    const to = from + PAGES_PER_SWEEP
    const [row] = await this.#sweep([
      String(nowMs),
      `(${from},0)`,
      `(${to},0)`,
      this.#settledToken,
      LOCK_WAIT_MS,
    ])
    this.#nextPage = Number(row?.[1]) > to ? to : 0
    // Of use, but nothing that a sweep could fail by.
    await refreshStatistics(this.#executor).catch(() => {})
    return Number(row?.[0])
  }

  /** A sweep that met a locked row has been rolled back, so it can begin again. */
  async #sweep(values: string[]): Promise<readonly Row[]> {
    const untilNanos = this.#executor.deadline()
    for (;;) {
      try {
        return await this.#executor.withConnection(
          (send) => send(SWEEP, values, untilNanos),
          untilNanos,
        )
      } catch (failure) {
        const late = this.#executor.clock.monotonicNanos() >= untilNanos
        if (late || !(failure instanceof StatementFailure) || !failure.metLock) {
          throw toldOf(failure)
        }
      }
    }
  }

  async #moveMark(): Promise<void> {
    const [row] = await this.#executor.run(MARK, [])
    const [token, transactionId, oldestRunning] = row ?? []
    if (!token || !transactionId || !oldestRunning) return
    // A mark is kept until it is reached: new ones all the time would never be.
    if (this.#mark && BigInt(oldestRunning) < this.#mark.transactionId) return
    if (this.#mark) this.#settledToken = this.#mark.token
    this.#mark = { token, transactionId: BigInt(transactionId) }
  }
}
