import { readdir, readFile } from 'node:fs/promises'
import { CompiledQuery, Kysely, type Migration, Migrator, PostgresDialect } from 'kysely'
import pg from 'pg'

/**
 * Brings a service's schema to its version: the numbered SQL files of `folder`, each immutable once
 * released, in order. Safe when several replicas start at once: the library's lock lets one work.
 *
 * @throws Error when it cannot, or when the schema is newer than this service
 */
export async function migrate(databaseUrl: string, folder: URL): Promise<void> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 2 })
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
  try {
    const migrator = new Migrator({ db, provider: { getMigrations: () => sqlFiles(folder) } })
    const { error } = await migrator.migrateToLatest()
    if (error !== undefined) {
      throw new Error(`the schema could not be migrated: ${(error as Error).message}`)
    }
  } finally {
    await db.destroy()
  }
}

async function sqlFiles(folder: URL): Promise<Record<string, Migration>> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql'))
  const migrations = names.map(async (name): Promise<[string, Migration]> => {
    const text = await readFile(new URL(name, folder), 'utf8')
    const up: Migration['up'] = async (db) => void (await db.executeQuery(CompiledQuery.raw(text)))
    return [name.replace(/\.sql$/, ''), { up }]
  })
  return Object.fromEntries(await Promise.all(migrations))
}

/** A pool whose every wait has a bound, and whose idle connections may break unheard. */
export function openPool(databaseUrl: string, max: number = 10): pg.Pool {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max,
    connectionTimeoutMillis: 2_000,
    statement_timeout: 2_500,
    query_timeout: 3_000,
  })
  pool.on('error', () => undefined)
  return pool
}
