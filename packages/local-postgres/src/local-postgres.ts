import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Clock, systemClock } from '@dlock/system'
import { type Account, postgresAccount } from './account.ts'
import { type BinarySource, findBinaries } from './binaries.ts'
import { clusterFolder, openCluster } from './cluster.ts'
import { canReach, makeFolder } from './folders.ts'
import { startOnPort } from './start-on-port.ts'

/** Which server to start. With nothing said: a throwaway one on a free port. */
export interface LocalPostgresOptions {
  /**
   * Where the cluster lives, created when there is none. Left out: a new folder among the system's
   * temporary files, removed with the server.
   */
  readonly folder?: string
  /** `'auto'`, the default: the system's newest when there is any, else npm's. */
  readonly binaries?: BinarySource | 'auto'
  /** On 127.0.0.1. 0, the default: one that is free. */
  readonly port?: number
  /** Of `postgresql.conf`, beside those that this package insists on. */
  readonly settings?: Readonly<Record<string, string>>
  /** Gets every line of the server's log. Must not throw. */
  readonly onLog?: (line: string) => void
  readonly clock?: Clock
}

/** A running server. It is stopped when this process ends, however it ends. */
export interface LocalPostgres extends AsyncDisposable {
  readonly folder: string
  readonly port: number
  /** The postmaster's process id. */
  readonly pid: number
  /** Of the binaries: `"18.4"`. */
  readonly version: string
  /** Settles when the server has ended, wanted or not, with the last lines of its log. */
  readonly ended: Promise<string>
  /** With user and password. The database is `postgres` unless named. A secret: not for logs. */
  url(database?: string): string
  /** Idempotent. Resolves when nothing of the server is left running, within about 20 s. */
  stop(): Promise<void>
}

/** What no caller may switch: durable, on loopback only, reached by no other way. */
const INSISTED: Readonly<Record<string, string>> = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
}

/**
 * Starts a PostgreSQL of your own.
 *
 * @throws Error that says what to do: no binaries, a folder that cannot be used, a cluster of
 *   another major version, one that another server runs on, a port that is taken
 */
export async function startLocalPostgres(
  options: LocalPostgresOptions = {},
): Promise<LocalPostgres> {
  if (options.folder !== undefined) return startIn(resolve(options.folder), options, false)
  const folder = await mkdtemp(join(tmpdir(), 'local-postgres-'))
  try {
    await chmod(folder, 0o755)
    return await startIn(folder, options, true)
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
}

async function startIn(
  folder: string,
  options: LocalPostgresOptions,
  throwaway: boolean,
): Promise<LocalPostgres> {
  const account = await postgresAccount(clusterFolder(folder))
  await makeUsable(folder, account)
  const binaries = await findBinaries(options.binaries ?? 'auto', account)
  const cluster = await openCluster(folder, binaries, account, !throwaway)
  const { port, server } = await startOnPort(options.port ?? 0, {
    binaries: binaries.folder,
    data: cluster.data,
    account,
    settings: { ...options.settings, ...INSISTED },
    throwaway: throwaway ? folder : undefined,
    onLog: options.onLog,
    clock: options.clock ?? systemClock,
  })
  const stop = async (): Promise<void> => {
    await server.stop()
    if (throwaway) await rm(folder, { recursive: true, force: true })
  }
  return {
    folder,
    port,
    pid: server.pid,
    version: binaries.version,
    ended: server.ended,
    url: (database = 'postgres') =>
      `postgresql://postgres:${cluster.password}@127.0.0.1:${port}/${encodeURIComponent(database)}`,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

async function makeUsable(folder: string, account: Account | undefined): Promise<void> {
  try {
    await makeFolder(folder)
  } catch (error) {
    throw new Error(`the folder ${folder} cannot be made: ${(error as Error).message}`)
  }
  if (await canReach(folder, account)) return
  throw new Error(
    `the folder ${folder} cannot be entered by the user that PostgreSQL has to run as (uid ${account?.uid}): let that user into every folder on the way (chmod a+x), or choose another folder`,
  )
}
