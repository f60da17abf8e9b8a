import { CLIENTS, type EtcdFigures, HELD, of, WAITERS } from './etcd.ts'
import type { Sample } from './sample.ts'
import { table } from './table.ts'

/** The whole page, as Markdown that also reads well on a terminal. */
export function etcdReport(
  clusters: readonly EtcdFigures[],
  machine: readonly string[],
  seconds: number,
): string {
  return `# Benchmarks of the etcd store

Written by \`npm run bench -- --etcd --write\`. One run, windows of ${seconds} s, on this machine:

${machine.map((line) => `- ${line}`).join('\n')}

Only the ratios travel, and only as far as the load averages are near the number of cores. The raw loop sends what an acquire
and a release write as one plain transaction each, one by one, over the store's own client; \`etcd3\` is the lock of that
package, 1.1.2, which takes a lease for each lock.

${clusters.map(section).join('\n')}`
}

function section(figures: EtcdFigures): string {
  const { members, raw, store, renew, etcd3, heartbeat, rawTxn, handOff, crowd } = figures
  return `## ${members === 1 ? 'One member' : `${members} members`}

${table(
  ['What', 'Clients', 'Per second', 'p50 ms', 'p99 ms', 'To the raw loop'],
  [
    ...CLIENTS.map((n) => row('raw loop, acquire + release', n, of(raw, n), of(raw, n))),
    ...CLIENTS.map((n) => row('store, acquire + release', n, of(store, n), of(raw, n))),
    ...CLIENTS.map((n) => row('etcd3, acquire + release', n, of(etcd3, n), of(raw, n))),
    ...CLIENTS.map((n) => row('store, renew', n, of(renew, n))),
    ...HELD.map((n) => row(`store, heartbeat, locks held: ${n}`, 1, of(heartbeat, n))),
  ],
)}

${table(
  ['Goal', 'Wanted', 'Measured', ''],
  [
    goal('store to raw loop, 1 client', 0.9, ratio(store, raw, 1)),
    goal('store to raw loop, 64 clients', 3, ratio(store, raw, 64)),
    goal('store to etcd3’s lock, 1 client', 3, ratio(store, etcd3, 1)),
    goal('store to etcd3’s lock, 64 clients', 3, ratio(store, etcd3, 64)),
    most('hand-off across processes, p50, in raw round trips', 3, handOff.ms(0.5) / rawTxn.ms(0.5)),
  ],
)}

Hand-off across two engines: p50 ${handOff.ms(0.5).toFixed(2)} ms, p99 ${handOff.ms(0.99).toFixed(2)} ms (${handOff.count} of them); one raw transaction: p50
${rawTxn.ms(0.5).toFixed(2)} ms. ${WAITERS} waiters on one key in two engines: ${Math.round(crowd.perSecond)} hand-offs a second, p99 ${crowd.ms(0.99).toFixed(1)} ms.
`
}

function row(what: string, clients: number, sample: Sample, base?: Sample): string[] {
  return [
    what,
    String(clients),
    String(Math.round(sample.perSecond)),
    sample.ms(0.5).toFixed(2),
    sample.ms(0.99).toFixed(2),
    base === undefined ? '' : (sample.perSecond / base.perSecond).toFixed(2),
  ]
}

type ByClients = ReadonlyMap<number, Sample>

function ratio(a: ByClients, b: ByClients, clients: number): number {
  return of(a, clients).perSecond / of(b, clients).perSecond
}

function goal(what: string, wanted: number, got: number): string[] {
  return [what, `≥ ${wanted}`, got.toFixed(2), got >= wanted ? 'met' : '**missed**']
}

function most(what: string, wanted: number, got: number): string[] {
  return [what, `≤ ${wanted}`, got.toFixed(2), got <= wanted ? 'met' : '**missed**']
}
