import { KEYS_PER_WORKER } from './bare-statements.ts'
import type { Goal } from './goals.ts'
import { CONCURRENCIES, type Figures, sampleOf } from './measure.ts'
import type { Sample } from './sample.ts'
import { table } from './table.ts'

/** The whole page, as Markdown that also reads well on a terminal. */
export function report(
  figures: Figures,
  goals: readonly Goal[],
  machine: readonly string[],
  { seconds, rounds }: { readonly seconds: number; readonly rounds: number },
): string {
  const { crowd } = figures
  const met = goals.filter((goal) => goal.met).length
  return `# Benchmarks

Written by \`npm run bench -- --write\`. One run, ${rounds} windows of ${seconds} s each, on this machine:

${machine.map((line) => `- ${line}`).join('\n')}

Only the ratios travel to another machine. Every figure below comes from a run in which no key had two holders and every
token was above the key's last.

## Goals

${met} of ${goals.length} met.

${table(
  ['Goal', 'Wanted', 'Measured', ''],
  goals.map(({ what, wanted, got, met: isMet }) => [
    what,
    wanted,
    got,
    isMet ? 'met' : '**missed**',
  ]),
)}

## Cycles: acquire and release

A cycle is an uncontended acquire and its release, on ${KEYS_PER_WORKER} keys of each client's own. Bare statements are the store's two, as
one would write them for one key, on the same tables (\`harness/bench/src/bare-statements.ts\`).

${table(
  ['What', 'Clients', 'Cycles/s', 'p50 ms', 'p99 ms'],
  [
    row('bare statements, one connection of the driver', 1, figures.bareLoop),
    ...CONCURRENCIES.map((n) =>
      row('bare statements, pgbench (a)', n, sampleOf(figures.pgbench, n)),
    ),
    ...CONCURRENCIES.map((n) => row('library mode (b)', n, sampleOf(figures.library, n))),
    row('server mode, multiplexed (c)', 64, figures.multiplexed),
    row('server mode, one HTTP request a call (c)', 64, figures.http),
  ],
)}

## Hand-off: from a release to the next waiter's grant

${table(
  ['What', 'Hand-offs', 'p50 ms', 'p99 ms'],
  [
    ['in one process (d)', String(figures.handOffHere.count), ...quantiles(figures.handOffHere)],
    [
      'across two processes (d)',
      String(figures.handOffAcross.count),
      ...quantiles(figures.handOffAcross),
    ],
  ],
)}

${crowd.waiters} waiters on one key (e): ${Math.round(crowd.handOffs / crowd.seconds)} hand-offs a second; each waiter had between ${Math.min(...crowd.shares)} and
${Math.max(...crowd.shares)} of ${crowd.handOffs} grants.
`
}

function row(what: string, clients: number, sample: Sample): string[] {
  return [what, String(clients), String(Math.round(sample.perSecond)), ...quantiles(sample)]
}

function quantiles(sample: Sample): string[] {
  return [sample.ms(0.5).toFixed(2), sample.ms(0.99).toFixed(2)]
}
