import type { Mode } from './modes.ts'
import type { FencedOut } from './payout-town.ts'

/** What one round left behind, from the rail, the ledger, the counters and the worker's own log. */
export interface Round {
  readonly stoppedAfter: 'claimed' | 'submitted'
  /** According to the rail's own log. */
  readonly requestsAtRail: number
  readonly paidByRailMinor: number
  readonly bookedMinor: number
  readonly balanceIsSum: boolean
  readonly fencedOut: FencedOut
  /** What the stopped worker was told after it went on. */
  readonly refusals: readonly Refusal[]
  readonly stoppedItself: boolean
  readonly tokens: { readonly stopped: string; readonly later: string }
}

export interface Refusal {
  readonly code: string
  readonly details: Readonly<Record<string, unknown>>
}

export interface Verdict {
  readonly passed: boolean
  /** What was shown, or what was shown instead. */
  readonly says: string
}

/**
 * Judges a mode by its effects *and* by their reason: a refusal by the payout's state, a worker that
 * stopped itself, or an unguarded run in which nothing went wrong is not a pass, whatever the
 * numbers are.
 */
export function judge(mode: Mode, rounds: readonly Round[]): Verdict {
  const faults = rounds.flatMap((round) => faultsOf(mode, round))
  if (rounds.length !== mode.stopAfter.length) faults.push('not every round was run')
  if (faults.length > 0) return { passed: false, says: faults.join('; ') }
  return { passed: true, says: shown(mode, rounds) }
}

function faultsOf(mode: Mode, round: Round): string[] {
  if (!mode.accountGuard && !mode.railGuard) return faultsOfUnguarded(round)
  const { requestsAtRail, paidByRailMinor, bookedMinor, balanceIsSum, stoppedAfter } = round
  const expected = mode.livenessChecks ? undefined : stoppedAfter === 'claimed' ? 'account' : 'rail'
  const faults = refusalFaults(expected, round)
  if (requestsAtRail !== 1) faults.push(`${requestsAtRail} requests at the rail instead of 1`)
  if (paidByRailMinor !== bookedMinor) {
    faults.push(`the rail paid ${paidByRailMinor}, the ledger says ${bookedMinor}`)
  }
  if (!balanceIsSum) faults.push('a balance is not the sum of its entries')
  if (mode.livenessChecks !== round.stoppedItself) {
    faults.push(
      mode.livenessChecks
        ? 'the worker did not stop itself'
        : 'the worker stopped itself: no guard was tested',
    )
  }
  return faults
}

/** Exactly one guard refused, for the token, with both tokens in its answer; nobody else did. */
function refusalFaults(
  expected: 'account' | 'rail' | undefined,
  { refusals, fencedOut, tokens }: Round,
): string[] {
  const faults: string[] = []
  for (const resource of ['account', 'ledger', 'rail'] as const) {
    const count = resource === expected ? 1 : 0
    if (fencedOut[resource] !== count) {
      faults.push(`lock_fenced_out_total{${resource}} is ${fencedOut[resource]}, not ${count}`)
    }
  }
  const [refusal, ...more] = refusals
  if (expected === undefined) {
    if (refusal !== undefined)
      faults.push(`refused with ${refusal.code}, and no guard was expected`)
    return faults
  }
  if (refusal === undefined) return [...faults, 'the late worker was not refused']
  if (more.length > 0)
    faults.push(`it went on after its refusal: ${more.map(({ code }) => code).join(', ')}`)
  if (refusal.code !== 'FENCED_OUT') faults.push(`refused with ${refusal.code}, not FENCED_OUT`)
  const { presentedToken, highestToken, resourceType } = refusal.details
  if (resourceType !== expected) faults.push(`refused by ${String(resourceType)}, not ${expected}`)
  const isLate = presentedToken === tokens.stopped && highestToken === tokens.later
  if (!isLate || BigInt(tokens.stopped) >= BigInt(tokens.later)) {
    faults.push(`tokens ${String(presentedToken)} and ${String(highestToken)} in the answer`)
  }
  return faults
}

/** If nothing is corrupted without guards, the experiment does not test what it says. */
function faultsOfUnguarded(round: Round): string[] {
  const faults: string[] = []
  if (round.requestsAtRail !== 2) {
    faults.push(`no corruption: ${round.requestsAtRail} requests at the rail instead of 2`)
  }
  if (round.paidByRailMinor === round.bookedMinor) {
    faults.push('no corruption: the ledger agrees with the rail')
  }
  if (Object.values(round.fencedOut).some((count) => count > 0)) {
    faults.push('a guard that is switched off refused')
  }
  return faults
}

function shown(mode: Mode, rounds: readonly Round[]): string {
  const [first] = rounds
  if (first === undefined) return ''
  if (!mode.accountGuard && !mode.railGuard) {
    return `corrupted: ${first.requestsAtRail} requests, the rail paid ${first.paidByRailMinor}, the ledger says ${first.bookedMinor}`
  }
  if (mode.livenessChecks) return 'LockLostError: it stopped itself, no guard was reached'
  const who = rounds.map(({ refusals, tokens }) => {
    return `${String(refusals[0]?.details['resourceType'])} (${tokens.stopped} < ${tokens.later})`
  })
  return `FENCED_OUT by ${who.join(' and ')}; 1 request, balanced`
}
