import { LockEngine } from '@dlock/engine'
import { createLockServer, createLog, LockMetrics } from '@dlock/lock-server'
import { destination } from 'pino'
import { readConfiguration } from './configuration.ts'
import { greeting } from './greeting.ts'
import type { Configuration } from './settings.ts'
import { onStopRequest } from './signals.ts'
import { stores } from './stores.ts'
import { usage } from './usage.ts'

/** Stopped when asked to. */
const STOPPED = 0
/** Could not start, or lost its database. */
const FAILED = 1
const MISCONFIGURED = 2

/** What one call may still take when lockd is asked to stop. */
const CLOSE_WITHIN_MS = 5_000
const LONGEST_WAIT_MS = 30_000

/** lockd, from its command line to its exit status. */
export async function main(
  args: readonly string[] = process.argv.slice(2),
  env: NodeJS.ProcessEnv = process.env,
): Promise<number> {
  const request = readConfiguration(args, env)
  if (request.kind === 'help') {
    process.stdout.write(usage())
    return STOPPED
  }
  if (request.kind === 'mistakes') {
    const list = request.mistakes.map((mistake) => `  ${mistake}\n`).join('')
    process.stderr.write(`lockd cannot be configured like this:\n${list}See lockd --help.\n`)
    return MISCONFIGURED
  }
  const { asked } = onStopRequest(() => process.exit(FAILED))
  try {
    const lost = await serve(request.configuration, asked, isForPeople(env))
    return lost ? FAILED : STOPPED
  } catch (error) {
    process.stderr.write(`lockd cannot start: ${whyNot(error)}\n`)
    return FAILED
  }
}

/** @returns whether it ended because the store was lost */
async function serve(
  configuration: Configuration,
  asked: Promise<NodeJS.Signals>,
  forPeople: boolean,
): Promise<boolean> {
  const stream = destination({ sync: false, minLength: 4_096, periodicFlush: 100 })
  const log = createLog({ level: configuration.logLevel, stream })
  await using opened = await stores[configuration.backend](configuration, log)
  const metrics = new LockMetrics(opened.store.backendId())
  await using engine = new LockEngine({
    store: opened.store,
    safetyMargin: configuration.safetyMargin,
    maxTtlMs: configuration.maxTtlMs,
    maxWaitMs: LONGEST_WAIT_MS,
    maxWaiters: configuration.maxWaiters,
    meter: metrics,
  })
  await engine.start()
  const server = createLockServer({
    engine,
    metrics,
    log,
    defaultSessionTtlMs: configuration.sessionTtlMs,
    defaultLockTtlMs: configuration.defaultTtlMs,
    maxLockTtlMs: configuration.maxTtlMs,
  })
  try {
    const { url } = await server.listen({
      host: configuration.listenHost,
      port: configuration.listenPort,
      insecure: configuration.insecure,
    })
    if (forPeople) process.stderr.write(greeting(url, opened.keptIn))
    log.info({ event: 'store_open', keptIn: opened.keptIn })
    const gone = opened.gone.then((reason) => ({ reason }))
    const why = await Promise.race([asked, gone])
    if (typeof why === 'object') log.fatal({ event: 'store_gone', reason: why.reason })
    else log.info({ event: 'stop_requested', signal: why })
    return typeof why === 'object'
  } finally {
    await server.close({ withinMs: CLOSE_WITHIN_MS })
  }
}

/** On a terminal, and under `npm start`, somebody reads. Else the log is all there is. */
function isForPeople(env: NodeJS.ProcessEnv): boolean {
  return process.stderr.isTTY || env['npm_lifecycle_event'] === 'start'
}

function whyNot(error: unknown): string {
  const { code, address, port, message } = error as NodeJS.ErrnoException & {
    address?: string
    port?: number
  }
  if (code === 'EADDRINUSE') {
    return `port ${port} of ${address} is taken. Is another lockd running? --lock-listen-port chooses another, 0 any that is free`
  }
  if (code === 'EACCES' && port !== undefined) {
    return `port ${port} needs more rights than this user has; --lock-listen-port chooses another`
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return `this machine has no address ${address ?? ''} to listen on: ${message}`
  }
  return message
}
