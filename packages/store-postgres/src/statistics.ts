import type { Executor } from './execute.ts'
import { statement } from './statement.ts'

/**
 * A table that has become twice as large as when the planner last counted it, and is no longer one
 * that is read whole faster than through an index.
 */
const OUTGROWN = statement(
  'outgrown',
  `
  SELECT count(*)::text FROM pg_class
  WHERE oid IN ('lock_entry'::regclass, 'lock_session'::regclass)
    AND pg_relation_size(oid) / current_setting('block_size')::bigint > 2 * relpages + 8`,
)

const ANALYZE = statement('analyze', 'ANALYZE lock_entry, lock_session')

/**
 * A prepared statement's plan is kept. One that was made while the tables were tiny reads them
 * whole, and goes on doing so when they have grown, until somebody counts them again; PostgreSQL
 * itself does so within a minute. Measured: half a second, instead of 2 ms, for the release of 60
 * keys beside 100 000 others.
 *
 * Only the owner of the tables can; for anybody else this changes nothing.
 */
export async function refreshStatistics(executor: Executor): Promise<void> {
  const [row] = await executor.run(OUTGROWN, [])
  if (row?.[0] !== '0') await executor.run(ANALYZE, [])
}
