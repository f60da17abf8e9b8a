import { LockClient, type LockClientOptions } from '@dlock/lock-client'
import {
  call,
  clockOf,
  createLog,
  paymentOperations,
  type RunningService,
  readSettings,
  Service,
} from '@dlock/messages'
import { type Clock, type Ids, type Random, systemIds, systemRandom } from '@dlock/system'
import type { Logger } from 'pino'
import { Executor } from './executor.ts'
import { ExecutorMetrics } from './executor-metrics.ts'
import { executorSettings } from './executor-settings.ts'
import { holdAt, type SectionHold } from './experiment.ts'

export interface ExecutorSeams {
  readonly clock?: Clock
  readonly random?: Random
  readonly ids?: Ids
  readonly log?: Logger
  /** For tests: a lock service in this process instead of `payout.lock.url`. */
  readonly lockService?: Extract<LockClientOptions, { readonly service: unknown }>['service']
  /** For tests: called after a step; see `SectionParts.reached`. */
  readonly reached?: SectionHold
}

/** Starts an executor as configured by `env`; it serves `/livez`, `/readyz` and `/metrics`. */
export async function startPayoutExecutor(
  env: Readonly<Record<string, string | undefined>>,
  seams: ExecutorSeams = {},
): Promise<RunningService> {
  const settings = readSettings(executorSettings, env)
  const clock = clockOf(seams)
  const random = seams.random ?? systemRandom
  const log = seams.log ?? createLog('payout-executor', { clock })
  const metrics = new ExecutorMetrics()
  const where =
    seams.lockService === undefined ? { url: settings.lockUrl } : { service: seams.lockService }
  const client = new LockClient({
    ...where,
    clock,
    random,
    sessionTtlMs: settings.sessionTtlMs,
    onSessionLost: (ownerId) => {
      metrics.sessionLost()
      executor.forgetSession()
      log.error({ event: 'session_lost', ownerId })
    },
  })
  const executor: Executor = new Executor({
    settings,
    client,
    metrics,
    log,
    clock,
    random,
    ids: seams.ids ?? systemIds,
    reached: seams.reached ?? holdAt(settings.holdAfter, log),
  })
  const service = new Service({
    log,
    metrics: metrics.registry,
    checkReady: async () => {
      const probe = { state: 'PENDING', limit: 1 } as const
      const limits = { timeoutMs: 1_000 }
      const page = await call(settings.paymentUrl, paymentOperations.listPayouts, probe, limits)
      if (page.kind !== 'ok') throw new Error('the payment resource does not answer')
    },
    clock,
  })
  if (!settings.livenessChecks) log.warn({ event: 'liveness_checks_disabled' })
  const running = await service.listen(settings.host, settings.port)
  executor.start()
  return {
    url: running.url,
    close: async () => {
      await executor.close()
      await running.close()
    },
  }
}
