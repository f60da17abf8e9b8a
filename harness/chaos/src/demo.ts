import { join } from 'node:path'
import type { RunningProcess } from '@dlock/faults'
import { startLocalPostgres } from '@dlock/local-postgres'
import { type Clock, systemClock } from '@dlock/system'
import {
  type Backend,
  type FencedOut,
  PayoutTown,
  type Reconciliation,
  startLockd,
} from './payout-town.ts'

export interface DemoOptions {
  readonly folder: string
  readonly payouts: number
  readonly accounts: number
  readonly executors: number
  /** Of the rail; 0 to measure throughput. */
  readonly railLatencyMs: number
  /** Whether the rail misbehaves and executors are killed and paused. */
  readonly faults: boolean
  readonly backend: Backend
  readonly onProgress: (progress: Progress) => void
  readonly clock?: Clock
}

export interface Progress {
  readonly done: number
  readonly total: number
  readonly note: string
}

export interface DemoResult {
  /** From the first claim to the last payout's end; how long processes take to start is no part. */
  readonly seconds: number
  readonly states: Readonly<Record<string, number>>
  readonly requestsAtRail: number
  /** Payouts that the rail was asked for more than once, according to its own log. */
  readonly duplicatesAtRail: number
  readonly unbalancedAccounts: number
  readonly fencedOut: FencedOut
  readonly reconciliation: Reconciliation
  /** Seconds that all executors spent in each hop. */
  readonly hops: Readonly<Record<string, number>>
}

const FINAL = ['POSTED', 'FAILED', 'ABANDONED']
const LEASE = '3s'
const OPENING_MINOR = 10_000_000

/** Everything as real processes, from empty databases to a reconciled ledger. */
export async function runDemo(options: DemoOptions): Promise<DemoResult> {
  const { folder, faults, onProgress, clock = systemClock } = options
  const note = (text: string): void => onProgress({ done: 0, total: options.payouts, note: text })
  note('starting databases, lockd and the services')
  await using postgres = await startLocalPostgres({ settings: { max_connections: '300' } })
  await using lockd = await startLockd(postgres, options.backend)
  await using town = await PayoutTown.open({
    postgres,
    lockUrl: lockd.url,
    folder,
    env: {
      RAIL_STUB_LATENCY: `${options.railLatencyMs}ms`,
      RAIL_READ_TIMEOUT: '400ms',
      PAYMENT_SETTLEMENT_WINDOW: '2s',
      ...(faults && RAIL_MISBEHAVES),
    },
  })
  const seed = await importPayouts(town, options)
  await town.keep('payouts.csv.json', { lines: seed.length })

  const executors: RunningProcess[] = []
  for (let i = 1; i <= options.executors; i += 1) {
    executors.push(await town.executor(`executor-${i}`, EXECUTOR))
  }
  const mishaps = faults ? misfortune(town, executors, clock) : Promise.resolve()
  await drain(town, options, clock)
  await mishaps
  const reconciliation = await town.reconcile()
  const result = { ...(await measure(town, executors)), reconciliation }
  await town.keepEvidence('evidence')
  await town.keep('result.json', result)
  return result
}

/** Declines, lost replies, slow replies beyond the proxy's patience, acknowledgements twice. */
const RAIL_MISBEHAVES = {
  RAIL_STUB_DECLINE_RATE: '0.05',
  RAIL_STUB_LOST_REPLY_RATE: '0.05',
  RAIL_STUB_SLOW_RATE: '0.03',
  RAIL_STUB_SLOW_LATENCY: '1s',
  RAIL_STUB_DUPLICATE_ACK_RATE: '0.1',
  RAIL_STUB_LOOKUP_LAG: '500ms',
}

const EXECUTOR = {
  PAYOUT_LOCK_TTL: LEASE,
  PAYOUT_SESSION_TTL: '5s',
  PAYOUT_STEP_TIMEOUT: '1s',
  PAYOUT_RAIL_READ_TIMEOUT: '10ms',
  PAYOUT_POLL_EVERY: '50ms',
}

async function importPayouts(town: PayoutTown, options: DemoOptions): Promise<readonly string[]> {
  for (let i = 0; i < options.accounts; i += 1) {
    await town.createAccount(`acc-${i}`, OPENING_MINOR)
  }
  const lines = Array.from(
    { length: options.payouts },
    (_, i) => `pay-${i},acc-${i % options.accounts},${100 + i},EUR,ben-${i}`,
  )
  const header = 'payoutId,accountId,amountMinor,currency,beneficiaryRef'
  await town.importPayouts([header, ...lines].join('\n'))
  return lines
}

/** One executor is killed with -9, another stopped for longer than its lease, and replaced. */
async function misfortune(
  town: PayoutTown,
  [killed, stopped]: readonly RunningProcess[],
  clock: Clock,
): Promise<void> {
  await killed?.waitForLine(/"event":"payout_executed"/)
  await killed?.kill()
  await town.executor('executor-instead', EXECUTOR)
  await stopped?.waitForLine(/"event":"payout_executed"/)
  stopped?.pause()
  await wait(clock, 6_000)
  stopped?.resume()
}

async function drain(town: PayoutTown, options: DemoOptions, clock: Clock): Promise<void> {
  const total = options.payouts
  for (;;) {
    const states = await countStates(town)
    const done = FINAL.reduce((sum, state) => sum + (states[state] ?? 0), 0)
    const ambiguous = states['RAIL_AMBIGUOUS'] ?? 0
    options.onProgress({ done, total, note: ambiguous > 0 ? `${ambiguous} ambiguous` : '' })
    if (done === total) return
    // Only evidence resolves them: the rail's own look-up, once it has caught up.
    if (done + ambiguous === total) await town.reconcile()
    await wait(clock, 200)
  }
}

async function countStates(town: PayoutTown): Promise<Record<string, number>> {
  const { rows } = await town.paydb.query<{ state: string; n: number }>(
    'SELECT state, count(*)::int AS n FROM payout GROUP BY state',
  )
  return Object.fromEntries(rows.map(({ state, n }) => [state, n]))
}

type Measured = Omit<DemoResult, 'reconciliation'>

async function measure(town: PayoutTown, executors: readonly RunningProcess[]): Promise<Measured> {
  const asked = (await town.railRequests()).map(({ clientRef }) => clientRef)
  const { rows } = await town.paydb.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM account a WHERE balance_minor <>
       (SELECT coalesce(sum(amount_minor), 0) FROM ledger_entry e WHERE e.account_id = a.account_id)`,
  )
  const { rows: spans } = await town.paydb.query<{ seconds: number }>(
    `SELECT extract(epoch FROM max(at) - min(at))::float AS seconds
       FROM payout_event WHERE event <> 'create'`,
  )
  return {
    seconds: spans[0]?.seconds ?? 0,
    states: await countStates(town),
    requestsAtRail: asked.length,
    duplicatesAtRail: asked.length - new Set(asked).size,
    unbalancedAccounts: rows[0]?.n ?? 0,
    fencedOut: await town.fencedOut(),
    hops: await hopSeconds(executors),
  }
}

async function hopSeconds(executors: readonly RunningProcess[]): Promise<Record<string, number>> {
  const hops: Record<string, number> = {}
  for (const { lines } of executors) {
    const url = /"service_listening","url":"([^"]+)"/.exec(lines.join('\n'))?.[1]
    const text = await fetch(`${url}/metrics`)
      .then((response) => response.text())
      .catch(() => '') // the one that was killed
    for (const [, hop = '', value] of text.matchAll(HOP))
      hops[hop] = (hops[hop] ?? 0) + Number(value)
  }
  return hops
}

const HOP = /^payout_hop_seconds_total\{hop="(\w+)"\} (\S+)$/gm

function wait(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(ms, resolve, { keepAlive: true })
  })
}

/** Where a demo's logs and evidence go, by its start. */
export function demoFolder(base: string, startedAt: Date): string {
  return join(base, startedAt.toISOString().replaceAll(/[:.]/g, '-'))
}
