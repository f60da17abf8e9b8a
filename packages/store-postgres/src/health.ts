import { type HealthCapability, NotLeaderError } from '@dlock/lock-api'
import type { Executor } from './execute.ts'
import { statement } from './statement.ts'

/** Needs the schema, and a server that takes writes. */
const CHECK = statement(
  'check_health',
  `
  SELECT (pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean)::text
  FROM fencing_token_seq`,
)

export function health(executor: Executor): HealthCapability {
  return {
    async checkHealth() {
      const [row] = await executor.run(CHECK, [])
      if (row?.[0] !== 'false') {
        throw new NotLeaderError('PostgreSQL is read-only here: it is not the primary')
      }
    },
  }
}
