import { LockEngine } from '@dlock/engine'
import type { LockHandle, QueueCapability } from '@dlock/lock-api'
import { EtcdCluster } from '@dlock/services'
import { EtcdStore } from '@dlock/store-etcd'
import { systemClock } from '@dlock/system'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'

const LONG_MS = 600_000

let cluster: EtcdCluster
let namespaces = 0

beforeAll(async () => {
  cluster = await EtcdCluster.start()
})
afterAll(() => cluster[Symbol.asyncDispose]())

class CountingStore extends EtcdStore {
  asks = 0

  override tryInsert(
    ...args: Parameters<EtcdStore['tryInsert']>
  ): ReturnType<EtcdStore['tryInsert']> {
    this.asks += 1
    return super.tryInsert(...args)
  }
}

/** One process: a store, and a session in it. */
class Process {
  readonly store: CountingStore
  readonly line: QueueCapability
  session = ''

  constructor(namespace: string) {
    this.store = new CountingStore({
      tryMs: 20_000,
      endpoints: cluster.endpoints,
      namespace,
      onWarning: () => {},
    })
    const { queue } = this.store.capabilities()
    if (queue === undefined) throw new Error('the store must queue')
    this.line = queue
  }

  get asks(): number {
    return this.store.asks
  }

  async open(): Promise<this> {
    await this.store.start()
    this.session = await this.store.openSession('worker', LONG_MS)
    onTestFinished(() => this.store.close())
    return this
  }

  tryInsert(ttlMs = LONG_MS): Promise<LockHandle | undefined> {
    return this.store.tryInsert('job', 'worker', this.session, ttlMs)
  }

  async acquire(): Promise<LockHandle> {
    const handle = await this.tryInsert()
    if (handle === undefined) throw new Error('the key must be granted')
    return handle
  }
}

async function processes(): Promise<[Process, Process, Process]> {
  namespaces += 1
  const open = () => new Process(`queue-${namespaces}`).open()
  return [await open(), await open(), await open()]
}

describe('the queue of processes', () => {
  test('grants the key in the order in which they came, and who had a turn stands at the end', async () => {
    const [holder, first, second] = await processes()
    let held = await holder.acquire()
    await first.line.join('job')
    await second.line.join('job')
    await holder.store.deleteIfOwner('job', held.fencingToken)
    expect(await second.tryInsert()).toBeUndefined()
    expect(await holder.tryInsert()).toBeUndefined()
    held = await first.acquire()
    await first.store.deleteIfOwner('job', held.fencingToken)
    expect(await first.tryInsert()).toBeUndefined()
    held = await second.acquire()
    await second.store.deleteIfOwner('job', held.fencingToken)
    expect(await second.tryInsert()).toBeUndefined()
    await first.acquire()
  })

  test('passes over who left, and keeps the place of who comes again', async () => {
    const [first, second, third] = await processes()
    for (const process of [first, second, third, second]) await process.line.join('job')
    await first.line.leave('job')
    await first.line.leave('job')
    expect(await third.tryInsert()).toBeUndefined()
    await second.acquire()
  })

  test('tells who is not next that it must wait, though the key is free', async () => {
    const [first, second] = await processes()
    await first.line.join('job')
    await second.line.join('job')
    expect(await first.store.capabilities().waiting?.want('job')).toBeUndefined()
    expect(await second.store.capabilities().waiting?.want('job')).toBeGreaterThan(0)
  })

  test('is not overtaken by a hand-over, which then only releases', async () => {
    const [holder, first] = await processes()
    const held = await holder.acquire()
    await first.line.join('job')
    const next = { ownerId: 'worker', sessionId: holder.session, ttlMs: LONG_MS }
    const passed = await holder.store
      .capabilities()
      .transfer?.transfer('job', held.fencingToken, next)
    expect(passed).toEqual({ released: true, granted: undefined, passedOver: true })
    await first.acquire()
  })

  test('does not keep a holder from its own grant', async () => {
    const [holder, first] = await processes()
    const held = await holder.acquire()
    await first.line.join('job')
    expect((await holder.tryInsert())?.fencingToken).toBe(held.fencingToken)
    expect(await holder.store.extend('job', held.fencingToken, LONG_MS)).toBeDefined()
  })

  test('is one for each key, however much keys look alike', async () => {
    const [first, second] = await processes()
    for (const key of ['job/1', 'jo', 'job ']) await first.line.join(key)
    await second.acquire()
  })

  test('is not blocked for long by a process that died', async () => {
    const [dead, next] = await processes()
    await dead.line.join('job')
    dead.store.close()
    await expect
      .poll(async () => (await next.tryInsert()) !== undefined, { timeout: 30_000, interval: 200 })
      .toBe(true)
  })

  test('wakes only the next process by a release, and the one behind it when that is granted', async () => {
    const [holder, first, second] = await processes()
    const held = await holder.acquire()
    const woken: string[] = []
    for (const [name, process] of Object.entries({ first, second })) {
      const stop = await process.store.capabilities().waiting?.subscribe(
        () => woken.push(name),
        () => {},
      )
      onTestFinished(() => stop?.())
      await process.line.join('job')
    }
    await holder.store.deleteIfOwner('job', held.fencingToken)
    await expect.poll(() => woken).toContain('first')
    expect(woken).not.toContain('second')
    await first.acquire()
    await expect.poll(() => woken).toContain('second')
  })
})

test('200 waiters in two processes: every second turn is the other one’s, and no herd asks', {
  timeout: 180_000,
}, async () => {
  const [a, b] = await processes()
  const engines = [new LockEngine({ store: a.store }), new LockEngine({ store: b.store })]
  for (const engine of engines) await engine.start()
  const held = await a.acquire()
  const order: number[] = []
  const waiters = engines.flatMap((engine, at) =>
    Array.from({ length: 100 }, async () => {
      const session = await engine.openSession('waiter', LONG_MS)
      const service = engine.forSession(session)
      const handle = await service.acquire('job', 'waiter', LONG_MS, 120_000)
      if (handle === undefined) throw new Error('a waiter was not served')
      order.push(at)
      await service.release(handle)
    }),
  )
  const waiting = () => engines.reduce((sum, engine) => sum + engine.gauges().waiters, 0)
  await expect.poll(waiting, { timeout: 60_000 }).toBe(200)
  const asked = a.asks + b.asks
  const from = systemClock.monotonicNanos()
  await a.store.deleteIfOwner('job', held.fencingToken)
  await Promise.all(waiters)
  const ms = Number((systemClock.monotonicNanos() - from) / 1_000_000n)
  const asks = a.asks + b.asks - asked
  const shares = [0, 1].map((at) => order.slice(0, 100).filter((who) => who === at).length)
  console.info(
    `200 waiters, two processes: ${shares.join(' and ')} of the first 100, ${asks} asks, ${ms} ms`,
  )
  expect(Math.max(...shares) / Math.min(...shares)).toBeLessThan(1.2)
  // Each process asks when it is next, and its next head once more: two heads, whatever waits.
  expect(asks).toBeLessThan(200 * 3)
  for (const engine of engines) await engine.close()
})
