import type { Breakage } from './broken-builds.ts'
import { Disturbance } from './disturbance.ts'
import type { Tally, Violation } from './journal.ts'
import type { Scenario } from './scenario.ts'
import { World } from './world.ts'

/** What came of a run. */
export interface Outcome {
  /** The first; a run ends with it. */
  readonly violation: Violation | undefined
  /** Of the whole trace: equal for equal runs. */
  readonly hash: string
  readonly steps: number
  readonly tally: Tally
}

/**
 * One run, from its first step to its end or its first violation. A function of its arguments: it
 * reads no clock, no chance, no environment.
 */
export async function simulate(
  scenario: Scenario,
  breakage: Breakage = {},
  listener?: (line: string) => void,
): Promise<Outcome> {
  const { durationMs, settleMs } = scenario.knobs
  const world = new World(scenario, breakage, listener)
  const { time, journal, resource } = world
  new Disturbance(world, scenario.knobs, breakage).plan(scenario.faults)
  const steps = await time.run((durationMs + settleMs) * 1_000_000, () => {
    resource.checkFences()
    return journal.violations.length > 0
  })
  if (journal.violations.length === 0) checkProgress(scenario, world)
  return {
    violation: journal.violations[0],
    hash: journal.digest(),
    steps,
    tally: journal.tally,
  }
}

/** A service that grants nothing violates nothing: once all is mended, every key is worked on. */
function checkProgress({ knobs }: Scenario, { journal, resource }: World): void {
  for (const key of knobs.keys) {
    if (resource.acceptedAt(key) > knobs.durationMs * 1_000_000) continue
    journal.violate('progress', `${key} was not written to in ${knobs.settleMs} ms without faults`)
  }
}
