import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { ACQUIRE, KEYS_PER_WORKER, RELEASE } from './bare-statements.ts'
import type { Sample } from './sample.ts'

const run = promisify(execFile)

const DEBIAN = '/usr/lib/postgresql'

/** @throws Error that says what to install */
export async function findPgbench(): Promise<string> {
  const versions = existsSync(DEBIAN)
    ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a))
    : []
  const folders = [
    ...versions.map((version) => join(DEBIAN, version, 'bin')),
    ...(process.env['PATH'] ?? '').split(delimiter),
  ]
  const found = folders.map((folder) => join(folder, 'pgbench')).find((path) => existsSync(path))
  if (found !== undefined) return found
  throw new Error(
    'pgbench is the baseline, and it is not installed. On Debian: apt-get install postgresql-15 (or newer)',
  )
}

export interface PgbenchRun {
  readonly pgbench: string
  readonly url: string
  readonly sessionId: string
  readonly clients: number
  readonly windowMs: number
}

/**
 * The two bare statements on prepared statements from `clients` connections, each on keys of its
 * own. pgbench counts whole seconds.
 */
export async function runPgbench(options: PgbenchRun, sample: Sample): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'dlock-pgbench-'))
  try {
    const script = join(folder, 'cycle.sql')
    await writeFile(script, scriptFor(options.sessionId))
    const seconds = Math.max(1, Math.round(options.windowMs / 1_000))
    const clients = [
      '--client',
      String(options.clients),
      '--jobs',
      String(Math.min(options.clients, 2)),
    ]
    const args = ['--no-vacuum', '--protocol=prepared', ...clients, '--time', String(seconds)]
    await run(options.pgbench, [...args, '--file', script, '--log', '--log-prefix', 'log'], {
      cwd: folder,
      env: { ...process.env, ...connectionOf(options.url) },
    })
    for (const name of await readdir(folder)) {
      if (name.startsWith('log')) recordLog(await readFile(join(folder, name), 'utf8'), sample)
    }
    sample.lasted(seconds)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** A line of pgbench's log: client, transaction, microseconds, script, time. */
export function recordLog(log: string, sample: Sample): void {
  for (const line of log.split('\n')) {
    const us = line.split(' ')[2]
    if (us !== undefined) sample.record(Number(us))
  }
}

function scriptFor(sessionId: string): string {
  const key = "('bench:' || :client_id || ':' || :turn)"
  const acquire = ACQUIRE.replaceAll('$1', key).replaceAll('$2', `'${sessionId}'`)
  const release = RELEASE.replaceAll('$1', key).replaceAll('$2', ':fencing_token')
  const oneLine = (sql: string): string => sql.replaceAll(/\s+/g, ' ').trim()
  return `\\set turn random(1, ${KEYS_PER_WORKER})\n${oneLine(acquire)} \\gset\n${oneLine(release)};\n`
}

/** By environment, because a command line is everybody's to read. */
function connectionOf(url: string): Record<string, string> {
  const { hostname, port, username, password, pathname } = new URL(url)
  return {
    PGHOST: hostname,
    PGPORT: port,
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: decodeURIComponent(pathname.slice(1)),
  }
}
