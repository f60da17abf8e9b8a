import type { Breakage } from './broken-builds.ts'
import type { Violation } from './journal.ts'
import type { Fault, Scenario } from './scenario.ts'
import { simulate } from './simulate.ts'

/** A scenario that still fails in the same way, and how many runs it took to find it. */
export interface Shrunk {
  readonly scenario: Scenario
  readonly violation: Violation
  readonly runs: number
}

/**
 * The least of a failing scenario: faults are left out in ever smaller groups while the same rule is
 * still violated, then the network is calmed and the clocks are set right, if it fails without them.
 */
export async function shrink(
  failing: Scenario,
  violation: Violation,
  breakage: Breakage = {},
): Promise<Shrunk> {
  let least: Shrunk = { scenario: failing, violation, runs: 0 }
  const stillFails = async (scenario: Scenario): Promise<boolean> => {
    const { runs } = least
    const found = (await simulate(scenario, breakage)).violation
    const isSame = found !== undefined && found.rule === violation.rule
    least = isSame ? { scenario, violation: found, runs: runs + 1 } : { ...least, runs: runs + 1 }
    return isSame
  }
  let size = Math.ceil(least.scenario.faults.length / 2)
  while (size > 0) {
    const isLess = await anyOf(without(least.scenario.faults, size), (faults) =>
      stillFails({ ...least.scenario, faults }),
    )
    if (!isLess) size = size === 1 ? 0 : Math.ceil(size / 2)
    else size = Math.min(size, least.scenario.faults.length)
  }
  for (const knobs of calmer(failing)) {
    await stillFails({ ...least.scenario, knobs: { ...least.scenario.knobs, ...knobs } })
  }
  return least
}

async function anyOf<T>(items: Iterable<T>, isSo: (item: T) => Promise<boolean>): Promise<boolean> {
  for (const item of items) if (await isSo(item)) return true
  return false
}

/** `faults` without the first `size`, without the second, … */
function* without(faults: readonly Fault[], size: number): Iterable<readonly Fault[]> {
  for (let from = 0; from < faults.length; from += size) {
    yield [...faults.slice(0, from), ...faults.slice(from + size)]
  }
}

function calmer({ knobs }: Scenario): readonly Partial<Scenario['knobs']>[] {
  const rightSkews = Object.entries(knobs.skews).map(
    ([name, skew]) => [name, { ...skew, ratePpm: 0, wallOffMs: 0 }] as const,
  )
  return [
    { weather: { ...knobs.weather, loss: 0, duplication: 0, slowness: 0 } },
    { skews: Object.fromEntries(rightSkews) },
    { tasks: 1 },
  ]
}
