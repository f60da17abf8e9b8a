import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { TcpProxy } from '@dlock/faults'
import { ContentionError, NotLeaderError, RetryableLockError } from '@dlock/lock-api'
import { debianProgram, EtcdCluster } from '@dlock/services'
import { EtcdStore } from '@dlock/store-etcd'
import { systemClock, systemRandom } from '@dlock/system'
import { describe, expect, test } from 'vitest'
import { DeleteWatch } from '../src/client/delete-watch.ts'
import { EtcdClient } from '../src/client/etcd-client.ts'
import { put, remove } from '../src/client/txn.ts'
import { Holders, pause } from './holders.ts'
import { leaderOf } from './leader.ts'

const run = promisify(execFile)

const LOCKS = 20
/** Renewals in which every holder has had its turn a few times. */
const ROUND = 5 * LOCKS
const BETWEEN_TRIES_MS = 10
/** For one try, where nothing depends on it: a busy disk is no fault. */
const PATIENT_MS = 20_000

async function etcdctl(cluster: EtcdCluster, ...args: string[]): Promise<{ stdout: string }> {
  const program = await debianProgram('etcdctl', 'etcd-client')
  return await run(program, [`--endpoints=${cluster.endpoints.join(',')}`, ...args])
}

/** One store for each member, which it asks first. */
async function openStores({ endpoints }: EtcdCluster, tryMs = 1_000): Promise<EtcdStore[]> {
  const stores = endpoints.map(
    (_, index) =>
      new EtcdStore({
        endpoints: [...endpoints.slice(index), ...endpoints.slice(0, index)],
        tryMs,
      }),
  )
  for (const store of stores) await store.start()
  return stores
}

/** Tries until the store decides again; how long that took, in milliseconds. */
async function untilDecided(store: EtcdStore): Promise<number> {
  const from = systemClock.monotonicNanos()
  for (;;) {
    try {
      await store.openSession('probe', 60_000)
      return Number((systemClock.monotonicNanos() - from) / 1_000_000n)
    } catch (error) {
      if (!(error instanceof RetryableLockError)) throw error
      await pause(BETWEEN_TRIES_MS)
    }
  }
}

describe.concurrent('a cluster of three', { timeout: 180_000 }, () => {
  test('INV-04, INV-06: its leader killed under load, and a follower: no token repeated or lowered', async () => {
    await using cluster = await EtcdCluster.start(3)
    const stores = await openStores(cluster)
    const holders = new Holders()
    holders.start(stores, LOCKS)
    await holders.hasRenewed(ROUND)
    const leader = await leaderOf(cluster.endpoints)
    await cluster.member(leader).kill()
    const survivor = stores[(leader + 1) % 3]
    if (survivor === undefined) throw new Error('no survivor')
    const unavailableMs = await untilDecided(survivor)
    await holders.hasRenewed(ROUND)
    await cluster.startMember(leader)
    const follower = ((await leaderOf(cluster.endpoints)) + 1) % 3
    await cluster.member(follower).kill()
    await holders.hasRenewed(ROUND)
    await cluster.startMember(follower)
    await holders.hasRenewed(ROUND)
    const tally = await holders.stop()
    for (const store of stores) store.close()
    console.info(`leader killed: no decision for ${unavailableMs} ms, ${JSON.stringify(tally)}`)
    expect(tally.renewals).toBeGreaterThan(0)
    expect(tally).toMatchObject({ earlyLosses: 0, doubleHolders: 0, tokensOutOfOrder: 0 })
  })

  test('two members frozen: nothing is granted, lost or refused, and it goes on when they do', async () => {
    await using cluster = await EtcdCluster.start(3)
    const [store] = await openStores(cluster)
    if (store === undefined) throw new Error('no store')
    const session = await store.openSession('worker', 60_000)
    const held = await store.tryInsert('job', 'worker', session, 60_000)
    if (held === undefined) throw new Error('a free key must be granted')
    cluster.member(1).pause()
    cluster.member(2).pause()
    for (const call of [
      () => store.tryInsert('other', 'worker', session, 60_000),
      () => store.extend('job', held.fencingToken, 60_000),
      () => store.deleteIfOwner('job', held.fencingToken),
      () => store.heartbeat(session, 60_000),
      () => store.capabilities().health?.checkHealth(),
    ]) {
      await expect(call()).rejects.toBeInstanceOf(RetryableLockError)
    }
    cluster.member(1).resume()
    cluster.member(2).resume()
    await untilDecided(store)
    const other = await store.openSession('other', 60_000)
    // The release was never answered; it may have been applied late. Nothing in between.
    const taken = await store.tryInsert('job', 'other', other, 60_000)
    const kept = await store.extend('job', held.fencingToken, 60_000)
    expect([taken === undefined, kept === undefined]).not.toEqual([false, false])
    store.close()
  })
})

describe.concurrent('a member that is in trouble', { timeout: 60_000 }, () => {
  test('without space: acquires say so, releases work, and it recovers', async () => {
    await using cluster = await EtcdCluster.start(1, ['--quota-backend-bytes=262144'])
    const [store] = await openStores(cluster, PATIENT_MS)
    if (store === undefined) throw new Error('no store')
    const session = await store.openSession('worker', 60_000)
    const held = await store.tryInsert('job', 'worker', session, 60_000)
    if (held === undefined) throw new Error('a free key must be granted')
    await expect(
      (async () => {
        for (;;) await etcdctl(cluster, 'put', 'filler', 'x'.repeat(100_000))
      })(),
    ).rejects.toThrow(/database space exceeded/)
    await expect(store.tryInsert('other', 'worker', session, 60_000)).rejects.toBeInstanceOf(
      ContentionError,
    )
    await expect(store.extend('job', held.fencingToken, 60_000)).rejects.toBeInstanceOf(
      ContentionError,
    )
    expect(await store.deleteIfOwner('job', held.fencingToken)).toBe(true)
    const { stdout } = await etcdctl(cluster, 'endpoint', 'status', '--write-out=json')
    const [{ Status }] = JSON.parse(stdout)
    await etcdctl(cluster, 'compact', String(Status.header.revision))
    await etcdctl(cluster, 'del', 'filler')
    await etcdctl(cluster, 'defrag')
    await etcdctl(cluster, 'alarm', 'disarm')
    const again = await store.tryInsert('job', 'worker', session, 60_000)
    expect(again?.fencingToken).toBeGreaterThan(held.fencingToken)
    store.close()
  })

  test('that compacts under a watch: the watch says that there is a gap, and goes on', async () => {
    await using cluster = await EtcdCluster.start(1)
    const client = new EtcdClient({
      endpoints: cluster.endpoints,
      tryMs: PATIENT_MS,
      clock: systemClock,
    })
    const write = (key: string) =>
      client.txn({ compare: [], success: [put(key, 'x')], failure: [] })
    const first = await write('w/a')
    for (let index = 0; index < 5; index += 1) await write('w/b')
    const last = await client.txn({ compare: [], success: [remove('w/a')], failure: [] })
    await etcdctl(cluster, 'compact', String(last.revision))
    const gap = signal<void>()
    const deleted = signal<string>()
    const watch = new DeleteWatch({
      client,
      random: systemRandom,
      prefix: 'w/',
      fromRevision: first.revision,
      onDeleted: (key) => {
        if (key === 'w/b') deleted.resolve(key)
      },
      onGap: () => gap.resolve(),
    })
    await gap.promise
    await watch.created
    await client.txn({ compare: [], success: [remove('w/b')], failure: [] })
    expect(await deleted.promise).toBe('w/b')
    watch.close()
    client.close()
  })

  test('that cannot be reached for a while: the watch hears of what was deleted meanwhile', async () => {
    await using cluster = await EtcdCluster.start(1)
    const [endpoint = ''] = cluster.endpoints
    await using proxy = await TcpProxy.start({ port: Number(endpoint.split(':')[1]) })
    const clientAt = (address: string): EtcdClient =>
      new EtcdClient({ endpoints: [address], tryMs: PATIENT_MS, clock: systemClock })
    const direct = clientAt(endpoint)
    const client = clientAt(`127.0.0.1:${proxy.port}`)
    const created = await direct.txn({ compare: [], success: [put('w/a', 'x')], failure: [] })
    const deleted = signal<string>()
    const watch = new DeleteWatch({
      client,
      random: systemRandom,
      prefix: 'w/',
      fromRevision: created.revision + 1n,
      onDeleted: deleted.resolve,
      onGap: () => {},
    })
    await watch.created
    proxy.refuse()
    proxy.reset()
    await direct.txn({ compare: [], success: [remove('w/a')], failure: [] })
    proxy.pass()
    expect(await deleted.promise).toBe('w/a')
    watch.close()
    client.close()
    direct.close()
  })

  test('that restarts under a watch: what was deleted in between is announced', async () => {
    await using cluster = await EtcdCluster.start(1)
    const [store] = await openStores(cluster, PATIENT_MS)
    const waiting = store?.capabilities().waiting
    if (store === undefined || waiting === undefined) throw new Error('no waiting')
    const session = await store.openSession('worker', 60_000)
    const held = await store.tryInsert('job', 'worker', session, 60_000)
    if (held === undefined) throw new Error('a free key must be granted')
    const freed = signal<string>()
    const stop = await waiting.subscribe(freed.resolve, () => {})
    await cluster.member(0).kill()
    await cluster.startMember(0)
    // A client of its own, which is there before the watch has found its way back.
    const [other] = await openStores(cluster, PATIENT_MS)
    expect(await other?.deleteIfOwner('job', held.fencingToken)).toBe(true)
    expect(await freed.promise).toBe('job')
    await stop()
    other?.close()
    store.close()
  })

  test('INV-04: that was restored from a snapshot: nothing is granted until the tokens are raised', async () => {
    await using cluster = await EtcdCluster.start(1)
    const [store] = await openStores(cluster, PATIENT_MS)
    if (store === undefined) throw new Error('no store')
    const snapshot = join(cluster.folder, 'snapshot.db')
    const session = await store.openSession('worker', 60_000)
    await etcdctl(cluster, 'snapshot', 'save', snapshot)
    const tokens: bigint[] = []
    for (let round = 0; round < 20; round += 1) {
      const handle = await store.tryInsert('job', 'worker', session, 60_000)
      if (handle === undefined) throw new Error('a free key must be granted')
      tokens.push(handle.fencingToken)
      await store.deleteIfOwner('job', handle.fencingToken)
    }
    await cluster.member(0).kill()
    await rm(cluster.memberFolder(0), { recursive: true })
    await etcdctl(cluster, 'snapshot', 'restore', snapshot, ...cluster.restoreFlags(0))
    await cluster.startMember(0)
    await untilAnswered(store)
    await expect(store.tryInsert('job', 'worker', session, 60_000)).rejects.toBeInstanceOf(
      NotLeaderError,
    )
    await expect(store.capabilities().health?.checkHealth()).rejects.toThrow(/restored/)
    await store.capabilities().tokens?.advanceTokens(tokens.at(-1) ?? 0n)
    const renewed = await store.openSession('worker', 60_000)
    const handle = await store.tryInsert('job', 'worker', renewed, 60_000)
    expect(handle?.fencingToken).toBeGreaterThan(tokens.at(-1) ?? 0n)
    store.close()
  })
})

interface Signal<Value> {
  readonly promise: Promise<Value>
  readonly resolve: (value: Value) => void
}

function signal<Value>(): Signal<Value> {
  let resolve: (value: Value) => void = () => {}
  const promise = new Promise<Value>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

/** Until the store has heard from the cluster again, whatever it heard. */
async function untilAnswered(store: EtcdStore): Promise<void> {
  for (;;) {
    try {
      await store.capabilities().health?.checkHealth()
      return
    } catch (error) {
      if (error instanceof NotLeaderError && /restored/.test(error.message)) return
      if (!(error instanceof RetryableLockError)) throw error
      await pause(BETWEEN_TRIES_MS)
    }
  }
}
