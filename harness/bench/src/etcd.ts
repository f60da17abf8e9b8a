/**
 * `npm run bench -- --etcd`: the etcd store, as ratios to the same transactions sent one by one over
 * the same client, and to the lock of the `etcd3` package; on clusters of one and of three members
 * on this machine.
 *
 * @packageDocumentation
 */
import { LockEngine } from '@dlock/engine'
import { EtcdCluster } from '@dlock/services/etcd-cluster'
import { EtcdStore } from '@dlock/store-etcd'
import { Etcd3 } from 'etcd3'
import { RawLoop } from './raw-etcd.ts'
import { microseconds, Sample } from './sample.ts'

const LONG_MS = 600_000
export const CLIENTS = [1, 64] as const
export const HELD = [1, 1_000] as const
export const WAITERS = 200

export interface EtcdFigures {
  readonly members: number
  readonly version: string
  /** One transaction, one client: what a round trip with one flush costs. */
  readonly rawTxn: Sample
  /** By number of clients. */
  readonly raw: ReadonlyMap<number, Sample>
  readonly store: ReadonlyMap<number, Sample>
  readonly renew: ReadonlyMap<number, Sample>
  readonly etcd3: ReadonlyMap<number, Sample>
  /** By number of locks that the session holds. */
  readonly heartbeat: ReadonlyMap<number, Sample>
  readonly handOff: Sample
  readonly crowd: Sample
}

interface Bench {
  readonly endpoints: readonly string[]
  readonly windowMs: number
}

export async function measureEtcd(
  members: number,
  windowMs: number,
  say: (line: string) => void,
): Promise<EtcdFigures> {
  await using cluster = await EtcdCluster.start(members)
  const bench = { endpoints: cluster.endpoints, windowMs }
  const figures = {
    members,
    version: await versionOf(bench),
    rawTxn: new Sample(),
    raw: samples(CLIENTS),
    store: samples(CLIENTS),
    renew: samples(CLIENTS),
    etcd3: samples(CLIENTS),
    heartbeat: samples(HELD),
    handOff: new Sample(),
    crowd: new Sample(),
  }
  await cycles({ ...bench, windowMs: 500 }, 8, new Sample())
  for (const clients of CLIENTS) {
    say(`${members} members, ${clients} clients`)
    // In turns, so that a machine that slows down slows all of them.
    for (let round = 0; round < 2; round += 1) {
      await rawCycles(bench, clients, of(figures.raw, clients))
      await cycles(bench, clients, of(figures.store, clients))
      await etcd3Cycles(bench, clients, of(figures.etcd3, clients))
    }
    await renewals(bench, clients, of(figures.renew, clients))
  }
  for (const held of HELD) await heartbeats(bench, held, of(figures.heartbeat, held))
  say(`${members} members, hand-off`)
  await handOffs(bench, figures.handOff, figures.rawTxn)
  say(`${members} members, ${WAITERS} waiters`)
  await crowd(bench, figures.crowd)
  return figures
}

async function versionOf({ endpoints }: Bench): Promise<string> {
  using loop = await RawLoop.open(endpoints)
  return await loop.version()
}

async function rawCycles(
  { endpoints, windowMs }: Bench,
  clients: number,
  into: Sample,
): Promise<void> {
  using loop = await RawLoop.open(endpoints)
  await timed(windowMs, clients, into, async (client) => {
    await loop.release(`raw-${client}`, await loop.acquire(`raw-${client}`))
  })
}

async function cycles(bench: Bench, clients: number, into: Sample): Promise<void> {
  using opened = await openStore(bench)
  const { store } = opened
  const session = await store.openSession('bench', LONG_MS)
  await timed(bench.windowMs, clients, into, async (client) => {
    const handle = await store.tryInsert(`lock-${client}`, 'bench', session, LONG_MS)
    if (handle === undefined) throw new Error('a key of its own was held')
    await store.deleteIfOwner(handle.key, handle.fencingToken)
  })
}

async function renewals(bench: Bench, clients: number, into: Sample): Promise<void> {
  using opened = await openStore(bench)
  const { store } = opened
  const session = await store.openSession('bench', LONG_MS)
  const handles = await Promise.all(
    Array.from({ length: clients }, (_, n) =>
      store.tryInsert(`renewed-${clients}-${n}`, 'bench', session, LONG_MS),
    ),
  )
  await timed(bench.windowMs, clients, into, async (client) => {
    const { key = '', fencingToken = 0n } = handles[client] ?? {}
    if ((await store.extend(key, fencingToken, LONG_MS)) === undefined) throw new Error('lost')
  })
}

async function heartbeats(bench: Bench, held: number, into: Sample): Promise<void> {
  using opened = await openStore(bench)
  const { store } = opened
  const session = await store.openSession('bench', LONG_MS)
  await Promise.all(
    Array.from({ length: held }, (_, n) =>
      store.tryInsert(`held-${held}-${n}`, 'bench', session, LONG_MS),
    ),
  )
  await timed(bench.windowMs, 1, into, async () => {
    if (!(await store.heartbeat(session, LONG_MS))) throw new Error('the session died')
  })
}

async function etcd3Cycles(
  { endpoints, windowMs }: Bench,
  clients: number,
  into: Sample,
): Promise<void> {
  const client = new Etcd3({ hosts: endpoints.map((endpoint) => `http://${endpoint}`) })
  await timed(windowMs, clients, into, async (n) => {
    const lock = await client.lock(`etcd3-${n}`).ttl(60).acquire()
    await lock.release()
  })
  client.close()
}

/**
 * From a release in one engine to the grant in the other, over and over. Between two of them plain
 * transactions are timed, to compare with, in which the next waiter comes to rest.
 */
async function handOffs(bench: Bench, into: Sample, rawTxn: Sample): Promise<void> {
  using loop = await RawLoop.open(bench.endpoints)
  using first = await openStore(bench)
  using second = await openStore(bench)
  const parties = await Promise.all(
    [first, second].map(async ({ store }) => {
      const engine = new LockEngine({ store })
      await engine.start()
      return { engine, service: engine.forSession(await engine.openSession('bench', LONG_MS)) }
    }),
  )
  let turn = 0
  const acquire = () =>
    parties[turn % 2]?.service.acquire('handed', 'bench', LONG_MS, 30_000) ?? Promise.reject()
  let held = await acquire()
  // Few in a second, so twice as long.
  const end = performance.now() + 2 * bench.windowMs
  while (performance.now() < end) {
    const holder = parties[turn % 2]
    turn += 1
    const next = acquire()
    await until(() => parties[turn % 2]?.engine.gauges().waiters === 1)
    for (let n = 0; n < 4; n += 1) await rawRoundTrip(loop, rawTxn)
    const from = process.hrtime.bigint()
    const released = held === undefined ? undefined : holder?.service.release(held)
    held = await next
    into.record(microseconds(from, process.hrtime.bigint()))
    await released
  }
  for (const { engine } of parties) await engine.close()
}

async function rawRoundTrip(loop: RawLoop, into: Sample): Promise<void> {
  const from = process.hrtime.bigint()
  const revision = await loop.acquire('round-trip')
  into.record(microseconds(from, process.hrtime.bigint()))
  await loop.release('round-trip', revision)
}

/** How long one grant takes when 100 calls in each of two processes want the same key. */
async function crowd(bench: Bench, into: Sample): Promise<void> {
  using first = await openStore(bench)
  using second = await openStore(bench)
  const engines = [first, second].map(({ store }) => new LockEngine({ store }))
  for (const engine of engines) await engine.start()
  const services = await Promise.all(
    Array.from({ length: WAITERS }, async (_, n) => {
      const engine = engines[n % 2]
      if (engine === undefined) throw new RangeError('no engine')
      return engine.forSession(await engine.openSession('bench', LONG_MS))
    }),
  )
  let last = process.hrtime.bigint()
  await timed(bench.windowMs, WAITERS, new Sample(), async (n) => {
    const handle = await services[n]?.acquire('crowded', 'bench', LONG_MS, 60_000)
    if (handle === undefined) return
    const now = process.hrtime.bigint()
    into.record(microseconds(last, now))
    last = now
    await services[n]?.release(handle)
  })
  into.lasted(bench.windowMs / 1_000)
  for (const engine of engines) await engine.close()
}

async function openStore({ endpoints }: Bench): Promise<{ store: EtcdStore } & Disposable> {
  const store = new EtcdStore({ endpoints, tryMs: 5_000, onWarning: () => {} })
  await store.start()
  return { store, [Symbol.dispose]: () => store.close() }
}

async function timed(
  windowMs: number,
  clients: number,
  into: Sample,
  step: (client: number) => Promise<void>,
): Promise<void> {
  const start = performance.now()
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      while (performance.now() - start < windowMs) {
        const from = process.hrtime.bigint()
        await step(client)
        into.record(microseconds(from, process.hrtime.bigint()))
      }
    }),
  )
  into.lasted((performance.now() - start) / 1_000)
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

function samples(keys: readonly number[]): Map<number, Sample> {
  return new Map(keys.map((key) => [key, new Sample()]))
}

export function of(samplesOf: ReadonlyMap<number, Sample>, key: number): Sample {
  const sample = samplesOf.get(key)
  if (sample === undefined) throw new RangeError(`no sample of ${key}`)
  return sample
}
