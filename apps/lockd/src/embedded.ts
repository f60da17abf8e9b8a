import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import { chooseFolder, type LocalPostgres, startLocalPostgres } from '@dlock/local-postgres'
import type { Logger } from 'pino'

const NEAR_FOLDER = '.dlock/postgres'

/**
 * The PostgreSQL that lockd brings along, for when none is configured. Always the binaries on npm,
 * so that a system upgrade never leaves the data to another major version.
 */
export async function startEmbedded(
  folder: string | undefined,
  log: Logger,
): Promise<LocalPostgres> {
  return startLocalPostgres({
    folder: folder ?? (await chooseFolder([NEAR_FOLDER, farFolder()])),
    binaries: 'npm',
    // Nobody else uses it; a statement that outlives every call's patience is of use to nobody.
    settings: { max_connections: '40', statement_timeout: '10s' },
    onLog: (line) => logPostgres(log, line),
  })
}

/** For a working folder that the user of PostgreSQL cannot enter: root's, and of mode 700. */
function farFolder(): string {
  return `/var/lib/dlock/${createHash('sha256').update(resolve('.')).digest('hex').slice(0, 12)}`
}

function logPostgres(log: Logger, line: string): void {
  const level = /\b(WARNING|FATAL|PANIC):/.test(line) ? 'warn' : 'debug'
  log[level]({ event: 'postgres_log', line })
}
