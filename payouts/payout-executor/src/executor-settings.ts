import { kinds, type Settings } from '@dlock/messages'
import { type HoldPoint, holdPoint } from './experiment.ts'

export interface ExecutorSettings {
  readonly host: string
  readonly port: number
  readonly ownerId: string
  readonly lockUrl: string
  readonly paymentUrl: string
  readonly railProxyUrl: string
  /** The rail's own read time-out: the proxy is waited for 2 s longer. */
  readonly railReadTimeoutMs: number
  /** The longest that one call of guard 1 may take. */
  readonly stepTimeoutMs: number
  readonly ttlMs: number
  readonly sessionTtlMs: number
  readonly concurrency: number
  readonly pollMs: number
  /** For the experiment only: whether the executor asks itself if it still holds the lock. */
  readonly livenessChecks: boolean
  /** For the experiment only: where to stop and wait for SIGUSR2. */
  readonly holdAfter: HoldPoint
}

export const executorSettings: Settings<ExecutorSettings> = {
  host: { key: 'payout.listen.host', kind: kinds.text, fallback: '127.0.0.1' },
  port: { key: 'payout.listen.port', kind: kinds.wholeNumber(0, 65_535), fallback: 7_440 },
  ownerId: { key: 'payout.owner', kind: kinds.text, fallback: 'payout-executor' },
  lockUrl: { key: 'payout.lock.url', kind: kinds.url, fallback: 'http://127.0.0.1:7400' },
  paymentUrl: { key: 'payout.payment.url', kind: kinds.url, fallback: 'http://127.0.0.1:7410' },
  railProxyUrl: {
    key: 'payout.rail.proxy.url',
    kind: kinds.url,
    fallback: 'http://127.0.0.1:7420',
  },
  railReadTimeoutMs: {
    key: 'payout.rail.read.timeout',
    kind: kinds.duration(1, 600_000),
    fallback: 8_000,
  },
  stepTimeoutMs: {
    key: 'payout.step.timeout',
    kind: kinds.duration(10, 60_000),
    fallback: 3_000,
  },
  ttlMs: { key: 'payout.lock.ttl', kind: kinds.duration(100, 3_600_000), fallback: 30_000 },
  sessionTtlMs: {
    key: 'payout.session.ttl',
    kind: kinds.duration(1_000, 60_000),
    fallback: 30_000,
  },
  concurrency: { key: 'payout.concurrency', kind: kinds.wholeNumber(1, 1_000), fallback: 8 },
  pollMs: { key: 'payout.poll.every', kind: kinds.duration(1, 60_000), fallback: 500 },
  livenessChecks: { key: 'payout.liveness.checks', kind: kinds.flag, fallback: true },
  holdAfter: { key: 'payout.experiment.hold.after', kind: holdPoint, fallback: 'none' },
}
