/**
 * `npm run sim`: the shipped engine, client, guard rules and memory store, under schedules that one
 * number decides. Everything is in one process and in virtual time (`virtual-time.ts`): machines
 * with clocks of their own (`machine.ts`), messages that are lost, late, overtaken and repeated
 * (`network.ts`), and a plan of faults (`scenario.ts`, `disturbance.ts`): processes paused and
 * killed, machines asleep, clocks that jump, partitions, revocations, restores.
 *
 * What must hold is looked at after every step, by observers that share no code with what they
 * observe: `store-witness.ts` beside the store (INV-04, INV-06, FR-01, FR-04 to FR-06, FR-08, FR-11)
 * and the watcher in `guarded-resource.ts` over effects (INV-01, INV-05). That two workers *believe*
 * to hold one lock is counted, and is no violation. At the end the network is mended and work must
 * go on: a service that grants nothing would violate nothing.
 *
 * The first line of a run is its seed; the same seed gives the same trace, byte for byte, shown by
 * its hash. `broken-builds.ts` are the bugs that it is known to find.
 *
 * @packageDocumentation
 */
import { readFile } from 'node:fs/promises'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { type Breakage, brokenBuilds } from './broken-builds.ts'
import { linesOf } from './journal.ts'
import { type Scenario, scenarioOf } from './scenario.ts'
import { shrink } from './shrink.ts'
import { type Outcome, simulate } from './simulate.ts'
import { Sweep } from './sweep.ts'

const usage = `npm run sim [-- OPTION…]

  --seeds A..B       run these, and say how many a second (default 1..200)
  --seed N           run this one, and say what came of it
  --trace            with --seed or --scenario: every line of it
  --shrink           with --seed: the least of it that still fails, as a scenario
  --scenario FILE    run what --shrink printed
  --broken NAME      with a bug: ${Object.keys(brokenBuilds).join(' | ')}
`

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1..200' },
    seed: { type: 'string' },
    trace: { type: 'boolean', default: false },
    shrink: { type: 'boolean', default: false },
    scenario: { type: 'string' },
    broken: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) process.stdout.write(usage)
else if (values.scenario !== undefined) {
  const scenario = JSON.parse(await readFile(values.scenario, 'utf8')) as Scenario
  await one(scenario, breakageOf(values.broken))
} else if (values.seed !== undefined) {
  await one(scenarioOf(seedFrom(values.seed)), breakageOf(values.broken))
} else await many(values.seeds, breakageOf(values.broken))

async function one(scenario: Scenario, breakage: Breakage): Promise<void> {
  say(`seed ${scenario.seed}`)
  const outcome = await simulate(scenario, breakage, values.trace ? say : undefined)
  say(`${outcome.steps} steps, trace ${outcome.hash}`)
  for (const line of linesOf(outcome.tally)) say(line)
  if (outcome.violation === undefined) return
  complain(scenario.seed, outcome)
  if (!values.shrink) return
  const least = await shrink(scenario, outcome.violation, breakage)
  const { length } = least.scenario.faults
  say(`shrunk from ${scenario.faults.length} faults to ${length} in ${least.runs} runs:`)
  say(JSON.stringify(least.scenario, undefined, 2))
}

async function many(seeds: string, breakage: Breakage): Promise<void> {
  const [, from = '', to = ''] = /^(\d+)\.\.(\d+)$/.exec(seeds) ?? refuse('--seeds', seeds)
  say(`seeds ${from}..${to}`)
  const sweep = new Sweep()
  for (let seed = seedFrom(from); seed <= seedFrom(to); seed++) {
    const outcome = await simulate(scenarioOf(seed), breakage)
    sweep.add(outcome)
    if (outcome.violation !== undefined) complain(seed, outcome)
  }
  say(sweep.report())
}

function complain(seed: number, { violation }: Outcome): void {
  if (violation === undefined) return
  const { rule, what, atMs } = violation
  say(`seed ${seed} violates ${rule} at ${atMs.toFixed(3)} ms: ${what}`)
  process.exitCode = 1
}

function breakageOf(name: string | undefined): Breakage {
  if (name === undefined) return {}
  return brokenBuilds[name] ?? refuse('--broken', name)
}

function seedFrom(text: string): number {
  const seed = Number(text)
  return /^\d+$/.test(text) && seed < 2 ** 32 ? seed : refuse('--seed', text)
}

function refuse(option: string, value: string): never {
  process.stderr.write(`${option} cannot be ${JSON.stringify(value)}\n\n${usage}`)
  process.exit(2)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
