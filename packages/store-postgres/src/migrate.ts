import { readdir, readFile } from 'node:fs/promises'
import {
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  type Migration,
  type MigrationProvider,
  Migrator,
  PostgresAdapter,
  PostgresDialect,
  PostgresDriver,
  type PostgresPool,
  type TransactionSettings,
} from 'kysely'
import type { PgPool } from './driver-shape.ts'

/** Numbered files, each immutable once released. From `src` and from `dist` alike. */
const FOLDER = new URL('../sql/', import.meta.url)

/** Any number; all versions of this package use the same. */
const ADVISORY_LOCK = 4_707_263_781

/**
 * Brings the schema to this version: all steps that are missing, in one transaction. Any number of
 * processes may do it at once, through a pooler too; one works and the others find it done.
 *
 * @throws Error when it cannot, or when the schema is of a newer version than this package
 */
export async function migrate(pool: PgPool): Promise<void> {
  const db = new Kysely<unknown>({ dialect: new MigrationDialect({ pool: withoutEnd(pool) }) })
  const migrator = new Migrator({
    db,
    provider: sqlFiles,
    migrationTableName: 'dlock_migration',
    migrationLockTableName: 'dlock_migration_lock',
  })
  const { error } = await migrator.migrateToLatest()
  if (error !== undefined) {
    const why = error instanceof Error ? error.message : 'for no known reason'
    throw new Error(`the schema of the lock store could not be migrated: ${why}`)
  }
}

const sqlFiles: MigrationProvider = {
  async getMigrations(): Promise<Record<string, Migration>> {
    const names = (await readdir(FOLDER)).filter((name) => name.endsWith('.sql'))
    const migrations = names.map(async (name): Promise<[string, Migration]> => {
      const text = await readFile(new URL(name, FOLDER), 'utf8')
      return [
        name.replace(/\.sql$/, ''),
        { up: async (db) => void (await db.executeQuery(CompiledQuery.raw(text))) },
      ]
    })
    return Object.fromEntries(await Promise.all(migrations))
  },
}

/**
 * The library's own lock belongs to a connection, and behind a pooler in transaction mode a
 * statement after the next one runs on another connection. The lock of a transaction ends with it.
 */
class MigrationDialect extends PostgresDialect {
  readonly #pool: PostgresPool

  constructor(config: { readonly pool: PostgresPool }) {
    super(config)
    this.#pool = config.pool
  }

  override createDriver(): Driver {
    return new LockingDriver({ pool: this.#pool })
  }

  override createAdapter(): PostgresAdapter {
    return new UnlockedAdapter()
  }
}

class LockingDriver extends PostgresDriver {
  override async beginTransaction(
    connection: DatabaseConnection,
    settings: TransactionSettings,
  ): Promise<void> {
    await super.beginTransaction(connection, settings)
    await connection.executeQuery(
      CompiledQuery.raw(`SELECT pg_advisory_xact_lock(${ADVISORY_LOCK})`),
    )
  }
}

class UnlockedAdapter extends PostgresAdapter {
  override async acquireMigrationLock(): Promise<void> {}
  override async releaseMigrationLock(): Promise<void> {}
}

/** The pool is the caller's, to end. */
function withoutEnd(pool: PgPool): PostgresPool {
  return {
    async connect() {
      const client = await pool.connect()
      return {
        query: (text: unknown, values?: unknown) =>
          client.query({ text: String(text), values: [...((values as unknown[]) ?? [])] }),
        release: () => client.release(),
      } as unknown as Awaited<ReturnType<PostgresPool['connect']>>
    },
    async end() {},
  }
}
