import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { LocalPostgres } from '@dlock/local-postgres'
import { type Clock, systemClock } from '@dlock/system'
import type { Mode } from './modes.ts'
import { PayoutTown } from './payout-town.ts'
import { judge, type Refusal, type Round, type Verdict } from './verdict.ts'

export interface Surroundings {
  readonly postgres: LocalPostgres
  readonly lockUrl: string
  /** One folder a mode is made below it. */
  readonly folder: string
  readonly clock?: Clock
}

const LEASE = '3s'
const OPENING_MINOR = 1_000
const AMOUNT_MINOR = 100

/** The late worker: small time-outs, so that its lease of 3 s covers every step it takes. */
const LATE_WORKER = {
  PAYOUT_LOCK_TTL: LEASE,
  PAYOUT_SESSION_TTL: LEASE,
  PAYOUT_STEP_TIMEOUT: '1s',
  PAYOUT_RAIL_READ_TIMEOUT: '10ms',
  PAYOUT_CONCURRENCY: '1',
}

/** Runs one mode: real processes and databases, a real SIGSTOP. Its evidence is kept. */
export async function runMode(mode: Mode, around: Surroundings): Promise<Verdict> {
  const rounds: Round[] = []
  for (const stoppedAfter of mode.stopAfter) {
    await using town = await PayoutTown.open({
      ...around,
      folder: join(around.folder, mode.name, `stopped-after-${stoppedAfter}`),
      accountGuard: mode.accountGuard,
      railGuard: mode.railGuard,
      env: { RAIL_STUB_LATENCY: '0ms' },
    })
    const round = await runRound(mode, stoppedAfter, town, around.clock ?? systemClock)
    await town.keep('round.json', round)
    rounds.push(round)
  }
  return judge(mode, rounds)
}

async function runRound(
  mode: Mode,
  stoppedAfter: Round['stoppedAfter'],
  town: PayoutTown,
  clock: Clock,
): Promise<Round> {
  // Rounds share one lock service: an account of its own is a lock of its own.
  const accountId = `acc-${randomUUID()}`
  await town.createAccount(accountId, OPENING_MINOR)
  await town.createPayout('pay-1', accountId, AMOUNT_MINOR)

  const late = await town.executor('worker-A', {
    ...LATE_WORKER,
    PAYOUT_LIVENESS_CHECKS: String(mode.livenessChecks),
    PAYOUT_EXPERIMENT_HOLD_AFTER: stoppedAfter,
  })
  await late.waitForLine(/"event":"experiment_holding"/)
  late.pause()
  await town.keepEvidence('1-stopped')

  const later = await town.executor('worker-B')
  await untilPosted(town, clock)
  await later.stop()
  await town.keepEvidence('2-paid-by-the-later-holder')

  const before = late.lines.length
  late.resume()
  late.signal('SIGUSR2')
  await late.waitForLine(/"event":"experiment_going_on"/)
  await late.waitForLine(/"event":"(payout_executed|payout_put_off|lock_lost)"/)
  await town.keepEvidence('3-after-the-late-worker')

  const requests = (await town.railRequests()).filter(({ clientRef }) => clientRef === 'pay-1')
  const account = await town.account(accountId)
  const said = late.lines.slice(before).map((line) => JSON.parse(line) as LogLine)
  return {
    stoppedAfter,
    requestsAtRail: requests.length,
    paidByRailMinor: requests.reduce((sum, { amountMinor }) => sum + amountMinor, 0),
    bookedMinor: OPENING_MINOR - account.ledgerSumMinor,
    balanceIsSum: account.balanceMinor === account.ledgerSumMinor,
    fencedOut: await town.fencedOut(),
    refusals: said
      .filter(({ event }) => event === 'refused')
      .map(({ code = '', details = {} }): Refusal => ({ code, details })),
    stoppedItself: said.some(({ event }) => event === 'lock_lost'),
    tokens: await tokensOf(town),
  }
}

interface LogLine {
  readonly event: string
  readonly code?: string
  readonly details?: Readonly<Record<string, unknown>>
}

/** The tokens that the two holders were last admitted with, as guard 1 recorded them. */
async function tokensOf(town: PayoutTown): Promise<Round['tokens']> {
  const { rows } = await town.paydb.query<{ actor: string; fence: string }>(
    `SELECT actor, fence::text FROM payout_event WHERE event = 'claim' ORDER BY event_id`,
  )
  const tokenOf = (name: string): string =>
    rows.findLast(({ actor }) => actor === name)?.fence ?? '0'
  return { stopped: tokenOf('worker-A'), later: tokenOf('worker-B') }
}

async function untilPosted(town: PayoutTown, clock: Clock): Promise<void> {
  for (let tries = 0; tries < 600; tries += 1) {
    if ((await town.stateOf('pay-1')) === 'POSTED') return
    await new Promise<void>((resolve) => {
      clock.setTimer(100, resolve, { keepAlive: true })
    })
  }
  throw new Error('the later holder did not pay within a minute')
}
