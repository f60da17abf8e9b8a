import { resolve } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { type DemoResult, demoFolder, type Progress, runDemo } from './demo.ts'
import { type Backend, backendOf } from './payout-town.ts'

/** How much of the bar was shown last: a log gets a line only when it grows. */
let shown = -1

const { payouts, calm, ...values } = readOptions()

const folder = demoFolder(values.folder, new Date())
const result = await runDemo({
  folder: resolve(folder),
  payouts,
  accounts: 40,
  executors: 3,
  backend: values.backend,
  railLatencyMs: calm ? 0 : 20,
  faults: !calm,
  onProgress: showProgress,
})
const problems = problemsOf(result)
console.log(`\n\n${table(result)}\n\nlogs and evidence: ${folder}`)
for (const problem of problems) console.error(`FAILED: ${problem}`)
process.exitCode = problems.length === 0 ? 0 : 1

interface Options {
  readonly payouts: number
  readonly folder: string
  readonly backend: Backend
  /** Throughput: a rail at 0 ms that behaves, and nobody is killed. */
  readonly calm: boolean
}

/** Ends the process when they make no sense. */
function readOptions(): Options {
  try {
    const { values } = parseArgs({
      options: {
        payouts: { type: 'string', default: '200' },
        folder: { type: 'string', default: 'evidence/demo' },
        backend: { type: 'string', default: 'pg' },
        calm: { type: 'boolean', default: false },
      },
    })
    const payouts = Number(values.payouts)
    if (!Number.isInteger(payouts) || payouts < 1) {
      throw new RangeError(`payouts must be a whole number from 1, got ${values.payouts}`)
    }
    return { ...values, payouts, backend: backendOf(values.backend) }
  } catch (error) {
    console.error((error as Error).message)
    console.error('demo [--payouts N] [--calm] [--backend pg|etcd] [--folder PATH]')
    process.exit(2)
  }
}

function showProgress({ done, total, note }: Progress): void {
  const filled = Math.round((done / total) * 40)
  const bar = `${'#'.repeat(filled)}${'.'.repeat(40 - filled)}`
  const line = `[${bar}] ${done}/${total} ${note}`
  if (process.stdout.isTTY) process.stdout.write(`\r${line.padEnd(100)}`)
  else if (filled !== shown) console.log(line)
  shown = filled
}

/** What would make this run a failure: money twice, or books that do not balance. */
function problemsOf({
  duplicatesAtRail,
  unbalancedAccounts,
  reconciliation,
}: DemoResult): string[] {
  const problems: string[] = []
  if (duplicatesAtRail > 0) {
    problems.push(`${duplicatesAtRail} payouts were presented to the rail more than once`)
  }
  if (unbalancedAccounts > 0)
    problems.push(`${unbalancedAccounts} balances are not their ledger's sum`)
  for (const { kind, detail } of reconciliation.discrepancies) problems.push(`${kind}: ${detail}`)
  return problems
}

function table(result: DemoResult): string {
  const { states, fencedOut, hops, seconds } = result
  const total = Object.values(states).reduce((sum, n) => sum + n, 0)
  const spent = Object.values(hops).reduce((sum, s) => sum + s, 0)
  const share = Object.entries(hops).map(
    ([hop, s]) => `${hop} ${spent === 0 ? 0 : Math.round((100 * s) / spent)} %`,
  )
  const rows: [string, string | number][] = [
    ['posted', states['POSTED'] ?? 0],
    ['failed', states['FAILED'] ?? 0],
    ['ambiguous', states['RAIL_AMBIGUOUS'] ?? 0],
    ['requests at the rail', result.requestsAtRail],
    ['duplicates at the rail', result.duplicatesAtRail],
    ['ledger balanced', result.unbalancedAccounts === 0 ? 'yes' : 'NO'],
    ['fenced out by the account', fencedOut.account],
    ['fenced out by the ledger', fencedOut.ledger],
    ['fenced out by the rail proxy', fencedOut.rail],
    ['payouts per second', (total / seconds).toFixed(1)],
    ["share of a payout's time", share.join(', ')],
  ]
  return rows.map(([name, value]) => `${name.padEnd(30)}${value}`).join('\n')
}
