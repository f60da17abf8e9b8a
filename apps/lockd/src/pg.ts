import { openPostgresStore, type PgListenClient } from '@dlock/store-postgres'
import { Client, Pool } from 'pg'
import type { Logger } from 'pino'
import { startEmbedded } from './embedded.ts'
import type { Configuration } from './settings.ts'
import type { OpenStore } from './stores.ts'

/** Two statements of each kind that the store batches, and a few single ones. */
const CONNECTIONS = 16
const CONNECT_WITHIN_MS = 2_000

/** The PostgreSQL of `lockdb.url`, or the embedded one, with its schema brought up to date. */
export async function openPg(configuration: Configuration, log: Logger): Promise<OpenStore> {
  const { databaseUrl } = configuration
  if (databaseUrl !== undefined) {
    const keptIn = `PostgreSQL at ${new URL(databaseUrl).host}`
    return connect(databaseUrl, configuration.databaseListenUrl ?? databaseUrl, log, {
      keptIn,
      gone: new Promise(() => {}),
    })
  }
  const embedded = await startEmbedded(configuration.databaseFolder, log)
  try {
    const opened = await connect(embedded.url(), embedded.url(), log, {
      keptIn: `${embedded.folder} (PostgreSQL ${embedded.version})`,
      gone: embedded.ended.then((lastWords) => `the embedded PostgreSQL ended:\n${lastWords}`),
    })
    return {
      ...opened,
      async [Symbol.asyncDispose]() {
        await opened[Symbol.asyncDispose]()
        await embedded.stop()
      },
    }
  } catch (error) {
    await embedded.stop()
    throw error
  }
}

async function connect(
  url: string,
  listenUrl: string,
  log: Logger,
  about: Pick<OpenStore, 'keptIn' | 'gone'>,
): Promise<OpenStore> {
  const connection = {
    application_name: 'lockd',
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
    keepAlive: true,
  }
  const pool = new Pool({ ...connection, connectionString: url, max: CONNECTIONS })
  // A connection that breaks while nobody uses it; the next call gets another.
  pool.on('error', (error) => logDriverError(log, error, 'idle'))
  try {
    const store = await openPostgresStore({
      pool,
      listen: (): PgListenClient => new Client({ ...connection, connectionString: listenUrl }),
      onWarning: (message) => log.warn({ event: 'store_warning', message }),
      onDriverError: (error, statement) => logDriverError(log, error, statement),
    })
    return { ...about, store, [Symbol.asyncDispose]: () => pool.end() }
  } catch (error) {
    await pool.end()
    throw new Error(`cannot use ${about.keptIn}: ${(error as Error).message}`)
  }
}

function logDriverError(log: Logger, error: unknown, statement: string): void {
  const { code, message } = error as { code?: string; message?: string }
  log.warn({ event: 'driver_error', statement, code, message })
}
