import { createServer, type Server } from 'node:http'
import { parseArgs } from 'node:util'
import { type Clock, systemClock } from '@dlock/system'
import { ATTEMPT_TABLE } from './attempt.ts'
import { fencingProxy } from './fencing-proxy.ts'
import { inTransaction, type PostgresPool } from './postgres-client.ts'
import { FENCE_TABLE } from './postgres-fence.ts'

export interface ProgramSurroundings {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** Opens a pool on a URL; the program itself knows no driver. */
  readonly openPool: (url: string) => PostgresPool & { end(): Promise<void> }
  /** Gets one JSON line per event. */
  readonly log: (line: string) => void
  readonly clock?: Clock
}

export interface RunningProxy {
  readonly url: string
  /** Stops accepting, lets what is in flight finish (each step has its own bound), closes the pool. */
  close(): Promise<void>
}

const USAGE = `fencing-proxy: a guard in front of an HTTP API that cannot compare tokens

  --upstream URL          the API behind                             (FENCING_PROXY_UPSTREAM)
  --database URL          a PostgreSQL database of the proxy's own   (FENCING_PROXY_DATABASE)
  --port N                default 7500; 0 for any                    (FENCING_PROXY_PORT)
  --host ADDRESS          default 127.0.0.1; it has no authentication: another
                          address wants --insecure as well           (FENCING_PROXY_HOST)
  --connect-timeout-ms N  default 1000                               (FENCING_PROXY_CONNECT_TIMEOUT_MS)
  --read-timeout-ms N     default 8000                               (FENCING_PROXY_READ_TIMEOUT_MS)
  --insecure`

/** Reads its settings, creates its tables and serves. @throws Error that names every mistake */
export async function startFencingProxy(around: ProgramSurroundings): Promise<RunningProxy> {
  const settings = readSettings(around)
  const clock = around.clock ?? systemClock
  const pool = around.openPool(settings.database)
  await createTables(pool)
  const handle = fencingProxy({
    pool,
    upstream: settings.upstream,
    limits: settings.limits,
    clock,
    onEvent: ({ event, details, ...who }) => {
      const level = event === 'forwarded' ? 'info' : 'error'
      const time = clock.now().toISOString()
      around.log(
        JSON.stringify({ time, level, service: 'fencing-proxy', event, ...who, ...details }),
      )
    },
  })
  const server = createServer((req, res) => void handle(req, res))
  await listen(server, settings.port, settings.host)
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : settings.port
  return {
    url: `http://${settings.host}:${port}`,
    close: async () => {
      await new Promise((resolve) => {
        server.close(resolve)
        server.closeIdleConnections()
      })
      await pool.end()
    },
  }
}

/** Safe when several replicas start at once: one of them creates, the others wait and find. */
async function createTables(pool: PostgresPool): Promise<void> {
  await inTransaction(pool, CREATE_TIMEOUT_MS, async (client) => {
    await client.query(`SELECT pg_advisory_xact_lock(hashtext('dlock_fence'))`)
    await client.query(FENCE_TABLE)
    await client.query(ATTEMPT_TABLE)
  })
}

const CREATE_TIMEOUT_MS = 30_000

interface Settings {
  readonly upstream: URL
  readonly database: string
  readonly host: string
  readonly port: number
  readonly limits: { readonly connectTimeoutMs: number; readonly readTimeoutMs: number }
}

function readSettings({ argv, env }: ProgramSurroundings): Settings {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      upstream: { type: 'string' },
      database: { type: 'string' },
      host: { type: 'string' },
      port: { type: 'string' },
      'connect-timeout-ms': { type: 'string' },
      'read-timeout-ms': { type: 'string' },
      insecure: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) throw new Error(USAGE)
  const mistakes: string[] = []
  const text = (name: 'upstream' | 'database' | 'host' | 'port' | TimeOut): string | undefined =>
    values[name] ?? env[`FENCING_PROXY_${name.replaceAll('-', '_').toUpperCase()}`]
  const whole = (name: 'port' | TimeOut, fallback: number, min: number, max: number): number => {
    const given = text(name)
    const value = given === undefined ? fallback : Number(given)
    if (Number.isInteger(value) && value >= min && value <= max) return value
    mistakes.push(`--${name} must be a whole number from ${min} to ${max}, got ${given}`)
    return fallback
  }
  const url = (name: 'upstream' | 'database', protocols: readonly string[]): URL => {
    const given = text(name)
    if (given !== undefined && URL.canParse(given)) {
      const parsed = new URL(given)
      if (protocols.includes(parsed.protocol)) return parsed
    }
    // The database's URL holds a password: its value is not repeated.
    mistakes.push(`--${name} must be a URL that begins with ${protocols.join('// or ')}//`)
    return new URL('http://unset')
  }
  const settings = {
    upstream: url('upstream', ['http:', 'https:']),
    database: url('database', ['postgres:', 'postgresql:']).href,
    host: text('host') ?? '127.0.0.1',
    port: whole('port', 7_500, 0, 65_535),
    limits: {
      connectTimeoutMs: whole('connect-timeout-ms', 1_000, 1, 600_000),
      readTimeoutMs: whole('read-timeout-ms', 8_000, 1, 600_000),
    },
  }
  if (!LOOPBACK.has(settings.host) && values.insecure !== true) {
    mistakes.push(`--host ${settings.host} is open to others, without authentication: --insecure?`)
  }
  if (mistakes.length > 0) throw new Error(`${mistakes.join('\n')}\n\n${USAGE}`)
  return settings
}

type TimeOut = 'connect-timeout-ms' | 'read-timeout-ms'

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost'])

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
}
