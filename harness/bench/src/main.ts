/**
 * `npm run bench`: how fast dlock is, as ratios to what the same PostgreSQL does when it is spoken to
 * directly, measured in one run. Absolute numbers say more about a disk than about a lock service.
 *
 * - (a) `bare-statements.ts`, `pgbench.ts`: acquire and release as two bare statements.
 * - (b) `library-mode.ts`: client, engine and store in this process.
 * - (c) `server-mode.ts`: the client here, `lockd` as a process.
 * - (d) `hand-off.ts`: from a release to the next waiter's grant, in one process and across two.
 * - (e) `crowd.ts`: many waiters on one key, how many hand-offs and how evenly shared.
 *
 * Baselines and candidates take turns (`rounds`), so that a machine that slows down slows both. The
 * server is durable: fsync and synchronous commit are on. No figure is printed of a run in which
 * a key had two holders or a token that was not above the last (`exclusion.ts`).
 *
 * The etcd store has a page of its own, `etcd.ts`.
 *
 * @packageDocumentation
 */
import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { BenchDatabase } from './bench-database.ts'
import { measureEtcd } from './etcd.ts'
import { etcdReport } from './etcd-report.ts'
import { goals } from './goals.ts'
import { describeMachine } from './machine.ts'
import { measure } from './measure.ts'
import { findPgbench } from './pgbench.ts'
import { report } from './report.ts'

const REPORT = 'docs/benchmarks.md'
const ETCD_REPORT = 'docs/benchmarks-etcd.md'

const usage = `npm run bench [-- OPTION…]

  --seconds N   length of one window (default 3)
  --rounds N    windows of each measurement (default 3)
  --etcd        measure the etcd store instead
  --write       write the figures to ${REPORT}, or ${ETCD_REPORT}
`

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '3' },
    etcd: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) process.stdout.write(usage)
else if (values.etcd) await runEtcd(positive('seconds', values.seconds))
else await run(positive('seconds', values.seconds), positive('rounds', values.rounds))

async function run(seconds: number, rounds: number): Promise<void> {
  const pgbench = await findPgbench()
  await using database = await BenchDatabase.start()
  const figures = await measure({
    database,
    pgbench,
    windowMs: seconds * 1_000,
    rounds,
    say: (line) => process.stderr.write(`${line}\n`),
  })
  const text = report(
    figures,
    goals(figures),
    describeMachine(`PostgreSQL ${database.version}`, [
      'fsync, full_page_writes and synchronous_commit are on',
    ]),
    {
      seconds,
      rounds,
    },
  )
  process.stdout.write(text)
  if (values.write) await writeFile(REPORT, text)
}

async function runEtcd(seconds: number): Promise<void> {
  const clusters = []
  for (const members of [1, 3]) {
    clusters.push(
      await measureEtcd(members, seconds * 1_000, (line) => process.stderr.write(`${line}\n`)),
    )
  }
  const version = `etcd ${clusters[0]?.version ?? ''}`
  const text = etcdReport(
    clusters,
    describeMachine(version, ['etcd flushes every proposal']),
    seconds,
  )
  process.stdout.write(text)
  if (values.write) await writeFile(ETCD_REPORT, text)
}

function positive(option: string, text: string): number {
  const value = Number(text)
  if (value > 0 && value <= 3_600) return value
  process.stderr.write(`--${option} must be a number above 0 and at most 3600, got ${text}\n`)
  process.exit(2)
}
