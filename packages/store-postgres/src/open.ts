import { migrate } from './migrate.ts'
import { PostgresStore, type PostgresStoreOptions } from './postgres-store.ts'

/**
 * The usual way to a store: brings the schema to this version, and warns of settings of the server
 * that a lock service must not run with.
 *
 * @throws Error when the schema cannot be migrated
 * @throws ContentionError, NotLeaderError when the server cannot be asked
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  await migrate(options.pool)
  const store = new PostgresStore(options)
  await store.warnOfSettings()
  return store
}
