import { ForwardOnce } from '@dlock/guard'
import {
  clockOf,
  createLog,
  kinds,
  migrate,
  openPool,
  type RailSubmission,
  type RunningService,
  readSettings,
  Service,
  type Settings,
} from '@dlock/messages'
import type { Clock } from '@dlock/system'
import type { Logger } from 'pino'
import { serveRailProxy } from './http.ts'
import { railClient } from './rail-client.ts'
import { RailMetrics } from './rail-metrics.ts'

export interface RailProxySettings {
  readonly host: string
  readonly port: number
  readonly databaseUrl: string
  readonly railUrl: string
  readonly fencing: boolean
  readonly connectTimeoutMs: number
  readonly readTimeoutMs: number
}

export const railProxySettings: Settings<RailProxySettings> = {
  host: { key: 'rail.proxy.listen.host', kind: kinds.text, fallback: '127.0.0.1' },
  port: { key: 'rail.proxy.listen.port', kind: kinds.wholeNumber(0, 65_535), fallback: 7_420 },
  databaseUrl: { key: 'raildb.url', kind: kinds.databaseUrl },
  railUrl: { key: 'rail.url', kind: kinds.url, fallback: 'http://127.0.0.1:7430' },
  fencing: { key: 'rail.proxy.fencing.enabled', kind: kinds.flag, fallback: true },
  connectTimeoutMs: {
    key: 'rail.connect.timeout',
    kind: kinds.duration(1, 60_000),
    fallback: 1_000,
  },
  readTimeoutMs: { key: 'rail.read.timeout', kind: kinds.duration(1, 600_000), fallback: 8_000 },
}

/** Starts guard 2 as configured by `env`. */
export async function startRailProxy(
  env: Readonly<Record<string, string | undefined>>,
  parts: { readonly clock?: Clock; readonly log?: Logger } = {},
): Promise<RunningService> {
  const settings = readSettings(railProxySettings, env)
  const clock = clockOf(parts)
  const log = parts.log ?? createLog('rail-proxy', { clock })
  await migrate(settings.databaseUrl, new URL('../sql/', import.meta.url))
  const pool = openPool(settings.databaseUrl)
  const rail = railClient(settings.railUrl, settings, clock)
  const metrics = new RailMetrics(settings.fencing)
  const service = new Service({
    log,
    metrics: metrics.registry,
    checkReady: () => pool.query('SELECT 1'),
    clock,
  })
  const guard = new ForwardOnce<RailSubmission, string>({
    pool,
    forward: rail.submit,
    fencing: settings.fencing,
    clock,
  })
  serveRailProxy(service, { guard, rail, metrics })
  const stopWarning = settings.fencing ? () => undefined : warnWhileDisabled(clock, log)
  const running = await service.listen(settings.host, settings.port)
  return {
    url: running.url,
    close: async () => {
      stopWarning()
      await running.close()
      await pool.end()
    },
  }
}

/** FR-29: loud at start-up and every minute while the guard is off. */
function warnWhileDisabled(clock: Clock, log: Logger): () => void {
  const warn = (): void => log.warn({ event: 'guard_disabled', resource: 'rail' })
  warn()
  let timer = clock.setTimer(60_000, again)
  function again(): void {
    warn()
    timer = clock.setTimer(60_000, again)
  }
  return () => timer.cancel()
}
