import { expect, test } from 'vitest'
import { brokenBuilds } from '../src/broken-builds.ts'
import { type Scenario, scenarioOf } from '../src/scenario.ts'
import { shrink } from '../src/shrink.ts'
import { simulate } from '../src/simulate.ts'

async function traceOf(scenario: Scenario, bug?: string): Promise<string[]> {
  const lines: string[] = []
  await simulate(scenario, bug === undefined ? {} : brokenBuilds[bug], (line) => lines.push(line))
  return lines
}

test('the same seed gives the same trace, byte for byte, and the same hash', async () => {
  const [first, second] = [await traceOf(scenarioOf(9)), await traceOf(scenarioOf(9))]
  expect(second).toEqual(first)
  const hashes = [await simulate(scenarioOf(9)), await simulate(scenarioOf(9))]
  expect(hashes[1]?.hash).toBe(hashes[0]?.hash)
  expect((await simulate(scenarioOf(10))).hash).not.toBe(hashes[0]?.hash)
})

test('a scenario that went through JSON is the same', async () => {
  const copy = JSON.parse(JSON.stringify(scenarioOf(12))) as Scenario
  expect((await simulate(copy)).hash).toBe((await simulate(scenarioOf(12))).hash)
})

test('a failing seed shrinks to fewer faults that still break the same rule', async () => {
  const bug = brokenBuilds['the guard checks no fence'] ?? {}
  const scenario = scenarioOf(9)
  const { violation } = await simulate(scenario, bug)
  if (violation === undefined) throw new Error('seed 9 finds it')
  const least = await shrink(scenario, violation, bug)
  expect(least.violation.rule).toBe('INV-05')
  expect(least.scenario.faults.length).toBeLessThan(scenario.faults.length)
  expect((await simulate(least.scenario, bug)).violation).toEqual(least.violation)
  expect((await simulate(least.scenario)).violation).toBeUndefined()
})
