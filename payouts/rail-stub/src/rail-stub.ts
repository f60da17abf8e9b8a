import {
  clockOf,
  createLog,
  kinds,
  type RunningService,
  readSettings,
  Service,
  type Settings,
} from '@dlock/messages'
import { type Clock, type Random, systemIds, systemRandom } from '@dlock/system'
import type { Logger } from 'pino'
import { Registry } from 'prom-client'
import { serveRail } from './http.ts'
import { Rail, type RailFaults } from './rail.ts'

export interface RailStubSettings extends RailFaults {
  readonly host: string
  readonly port: number
}

const delay = kinds.duration(0, 3_600_000)

export const railStubSettings: Settings<RailStubSettings> = {
  host: { key: 'rail.stub.listen.host', kind: kinds.text, fallback: '127.0.0.1' },
  port: { key: 'rail.stub.listen.port', kind: kinds.wholeNumber(0, 65_535), fallback: 7_430 },
  latencyMs: { key: 'rail.stub.latency', kind: delay, fallback: 250 },
  declineRate: { key: 'rail.stub.decline.rate', kind: kinds.rate, fallback: 0 },
  failureRate: { key: 'rail.stub.failure.rate', kind: kinds.rate, fallback: 0 },
  lostReplyRate: { key: 'rail.stub.lost.reply.rate', kind: kinds.rate, fallback: 0 },
  duplicateAckRate: { key: 'rail.stub.duplicate.ack.rate', kind: kinds.rate, fallback: 0 },
  slowRate: { key: 'rail.stub.slow.rate', kind: kinds.rate, fallback: 0 },
  slowMs: { key: 'rail.stub.slow.latency', kind: delay, fallback: 0 },
  lookupLagMs: { key: 'rail.stub.lookup.lag', kind: delay, fallback: 0 },
}

/** Starts the rail as configured by `env`. */
export async function startRailStub(
  env: Readonly<Record<string, string | undefined>>,
  parts: { readonly clock?: Clock; readonly random?: Random; readonly log?: Logger } = {},
): Promise<RunningService> {
  const { host, port, ...faults } = readSettings(railStubSettings, env)
  const clock = clockOf(parts)
  const log = parts.log ?? createLog('rail-stub', { clock })
  const rail = new Rail(faults, { clock, random: parts.random ?? systemRandom, ids: systemIds })
  const service = new Service({
    log,
    metrics: new Registry(),
    checkReady: () => Promise.resolve(),
    clock,
  })
  serveRail(service, rail)
  return service.listen(host, port)
}
