import {
  clockOf,
  createLog,
  kinds,
  migrate,
  openPool,
  type RunningService,
  readSettings,
  Service,
  type Settings,
} from '@dlock/messages'
import type { Clock } from '@dlock/system'
import type { Logger } from 'pino'
import { servePayments } from './http.ts'
import { PaymentMetrics } from './payment-metrics.ts'
import { type Reconciliation, reconcile } from './reconcile.ts'

export interface PaymentSettings {
  readonly host: string
  readonly port: number
  readonly databaseUrl: string
  readonly railProxyUrl: string
  readonly fencing: boolean
  readonly settlementWindowMs: number
  readonly ambiguousLimitMs: number
  readonly reconcileEveryMs: number
}

export const paymentSettings: Settings<PaymentSettings> = {
  host: { key: 'payment.listen.host', kind: kinds.text, fallback: '127.0.0.1' },
  port: { key: 'payment.listen.port', kind: kinds.wholeNumber(0, 65_535), fallback: 7_410 },
  databaseUrl: { key: 'paydb.url', kind: kinds.databaseUrl },
  railProxyUrl: {
    key: 'payment.rail.proxy.url',
    kind: kinds.url,
    fallback: 'http://127.0.0.1:7420',
  },
  fencing: { key: 'payment.fencing.enabled', kind: kinds.flag, fallback: true },
  settlementWindowMs: {
    key: 'payment.settlement.window',
    kind: kinds.duration(0, 30 * 86_400_000),
    fallback: 86_400_000,
  },
  ambiguousLimitMs: {
    key: 'payment.ambiguous.limit',
    kind: kinds.duration(0, 30 * 86_400_000),
    fallback: 4 * 3_600_000,
  },
  reconcileEveryMs: {
    key: 'payment.reconcile.every',
    kind: kinds.duration(1_000, 86_400_000),
    fallback: 3_600_000,
  },
}

/** Starts guard 1 as configured by `env`. */
export async function startPaymentResource(
  env: Readonly<Record<string, string | undefined>>,
  parts: { readonly clock?: Clock; readonly log?: Logger } = {},
): Promise<RunningService> {
  const settings = readSettings(paymentSettings, env)
  const clock = clockOf(parts)
  const log = parts.log ?? createLog('payment-resource', { clock })
  await migrate(settings.databaseUrl, new URL('../sql/', import.meta.url))
  const pool = openPool(settings.databaseUrl)
  const metrics = new PaymentMetrics(settings.fencing)
  const service = new Service({
    log,
    metrics: metrics.registry,
    checkReady: () => pool.query('SELECT 1'),
    clock,
  })
  servePayments(service, { guarded: { pool, fencing: settings.fencing }, metrics })

  const reconcileNow = async (): Promise<Reconciliation> => {
    const report = await reconcile({ ...settings, pool })
    metrics.discrepancies(report.discrepancies.length)
    const level = report.discrepancies.length === 0 ? 'info' : 'error'
    log[level]({ event: 'reconciled', ...report })
    return report
  }
  service.app.post('/v1/reconciliations', reconcileNow)
  const stopReconciling = repeat(clock, settings.reconcileEveryMs, () => {
    reconcileNow().catch((err: unknown) => log.error({ event: 'reconciliation_failed', err }))
  })
  const stopWarning = settings.fencing ? () => undefined : warnWhileDisabled(clock, log)
  const running = await service.listen(settings.host, settings.port)
  return {
    url: running.url,
    close: async () => {
      stopReconciling()
      stopWarning()
      await running.close()
      await pool.end()
    },
  }
}

/** FR-29: loud at start-up and every minute while the guard is off. */
function warnWhileDisabled(clock: Clock, log: Logger): () => void {
  const warn = (): void => log.warn({ event: 'guard_disabled', resource: 'account, ledger' })
  warn()
  return repeat(clock, 60_000, warn)
}

function repeat(clock: Clock, everyMs: number, act: () => void): () => void {
  let timer = clock.setTimer(everyMs, again)
  function again(): void {
    act()
    timer = clock.setTimer(everyMs, again)
  }
  return () => timer.cancel()
}
