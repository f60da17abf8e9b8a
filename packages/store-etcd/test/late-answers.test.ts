import { ContentionError, LockHandle } from '@dlock/lock-api'
import { EtcdCluster } from '@dlock/services'
import { EtcdStore } from '@dlock/store-etcd'
import { systemClock, systemIds } from '@dlock/system'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EtcdClient } from '../src/client/etcd-client.ts'
import { EtcdError } from '../src/client/etcd-error.ts'
import type { Txn, TxnAnswer } from '../src/client/txn.ts'
import { deleteIfOwner } from '../src/delete-if-owner.ts'
import { EtcdState } from '../src/etcd-state.ts'
import { extend } from '../src/extend.ts'
import { revoke } from '../src/revoke.ts'
import { heartbeat, openSession } from '../src/sessions.ts'
import { transfer } from '../src/transfer.ts'
import { tryInsert } from '../src/try-insert.ts'

/** What happens to the next transaction on its way. */
type Fate = 'arrives' | 'reply-lost' | 'arrives-late' | 'never-arrives'

/** A client whose network does what it is told, before a real etcd. */
class FaultyClient extends EtcdClient {
  fate: Fate = 'arrives'
  /** Transactions that are under way still. */
  readonly late: Txn[] = []
  readonly sent: Txn[] = []

  override async txn(txn: Txn): Promise<TxnAnswer> {
    const { fate } = this
    this.fate = 'arrives'
    this.sent.push(txn)
    if (fate === 'arrives') return await super.txn(txn)
    if (fate === 'reply-lost') await super.txn(txn)
    if (fate === 'arrives-late') this.late.push(txn)
    throw new EtcdError('unknown', 'the reply was lost')
  }

  async deliverLate(): Promise<void> {
    for (const txn of this.late.splice(0)) await super.txn(txn)
  }

  async leaseOf(key: string): Promise<string> {
    const answer = await this.range({ key: Buffer.from(key) })
    return answer.items[0]?.lease ?? 'none'
  }
}

let cluster: EtcdCluster
let namespaces = 0

beforeAll(async () => {
  cluster = await EtcdCluster.start()
})
afterAll(() => cluster[Symbol.asyncDispose]())

async function openState(): Promise<{ client: FaultyClient; state: EtcdState }> {
  namespaces += 1
  const client = new FaultyClient({
    endpoints: cluster.endpoints,
    tryMs: 20_000,
    clock: systemClock,
  })
  const state = new EtcdState(client, `late-${namespaces}`, systemIds)
  await state.epoch.load()
  return { client, state }
}

async function holding(): Promise<{ client: FaultyClient; state: EtcdState; held: LockHandle }> {
  const { client, state } = await openState()
  const session = await openSession(state, 'worker', 60_000)
  const held = await tryInsert(state, 'job', 'worker', session, 60_000)
  if (held === undefined) throw new Error('a free key must be granted')
  return { client, state, held }
}

describe('a reply that is lost', () => {
  test('to an acquire: the grant is found and adopted, with the token that it was made with', async () => {
    const { client, state } = await openState()
    const session = await openSession(state, 'worker', 60_000)
    client.fate = 'reply-lost'
    const handle = await tryInsert(state, 'job', 'worker', session, 60_000)
    const again = await tryInsert(state, 'job', 'worker', session, 60_000)
    expect(handle?.fencingToken).toBe(again?.fencingToken)
    client.close()
  })

  test('to an acquire that was never applied: the acquire is made once, with another attempt', async () => {
    const { client, state } = await openState()
    const session = await openSession(state, 'worker', 60_000)
    client.fate = 'never-arrives'
    expect(await tryInsert(state, 'job', 'worker', session, 60_000)).toBeInstanceOf(LockHandle)
    client.close()
  })

  test('to an extension, a release, a heartbeat, a revocation: unknown, never lost or done', async () => {
    const { client, state, held } = await holding()
    const calls = [
      () => extend(state, 'job', held.fencingToken, 60_000),
      () => heartbeat(state, held.sessionId, 60_000),
      () => revoke(state, 'other', 'ops', 'a test of lost replies', undefined),
      () => deleteIfOwner(state, 'job', held.fencingToken),
    ]
    for (const call of calls) {
      client.fate = 'never-arrives'
      await expect(call()).rejects.toMatchObject({ name: 'EtcdError', kind: 'unknown' })
    }
    client.close()
  })

  test('to a hand-over: the next holder has the grant, once', async () => {
    const { client, state, held } = await holding()
    const sessionId = await openSession(state, 'next', 60_000)
    client.fate = 'reply-lost'
    const next = { ownerId: 'next', sessionId, ttlMs: 60_000 }
    const { granted } = await transfer(state, 'job', held.fencingToken, next)
    const again = await tryInsert(state, 'job', 'next', sessionId, 60_000)
    expect(granted?.fencingToken).toBe(again?.fencingToken)
    expect(granted?.fencingToken).toBeGreaterThan(held.fencingToken)
    client.close()
  })
})

describe('a transaction that arrives late, after it was given up', () => {
  test('an acquire is fenced off: it grants nothing behind anybody’s back', async () => {
    const { client, state } = await openState()
    const session = await openSession(state, 'worker', 60_000)
    client.fate = 'arrives-late'
    const handle = await tryInsert(state, 'job', 'worker', session, 60_000)
    if (handle === undefined) throw new Error('the second attempt must be granted')
    await deleteIfOwner(state, 'job', handle.fencingToken)
    await client.deliverLate()
    const rival = await openSession(state, 'rival', 60_000)
    expect(await tryInsert(state, 'job', 'rival', rival, 60_000)).toBeInstanceOf(LockHandle)
    client.close()
  })

  test('an extension does not move the marker back to a lease that ends sooner', async () => {
    const { client, state, held } = await holding()
    client.fate = 'arrives-late'
    await expect(extend(state, 'job', held.fencingToken, 60_000)).rejects.toThrow(EtcdError)
    state.slots.forget(60_000)
    await extend(state, 'job', held.fencingToken, 60_000)
    const newest = await client.leaseOf(state.keys.ttl('job'))
    await client.deliverLate()
    expect(await client.leaseOf(state.keys.ttl('job'))).toBe(newest)
    client.close()
  })

  test('a heartbeat does not move the session back to a lease that ends sooner', async () => {
    const { client, state, held } = await holding()
    client.fate = 'arrives-late'
    await expect(heartbeat(state, held.sessionId, 60_000)).rejects.toThrow(EtcdError)
    state.slots.forget(60_000)
    await heartbeat(state, held.sessionId, 60_000)
    const newest = await client.leaseOf(state.keys.session(held.sessionId))
    await client.deliverLate()
    expect(await client.leaseOf(state.keys.session(held.sessionId))).toBe(newest)
    client.close()
  })

  test('P-20: an extension does not bring a released lock back', async () => {
    const { client, state, held } = await holding()
    client.fate = 'arrives-late'
    await expect(extend(state, 'job', held.fencingToken, 60_000)).rejects.toThrow(EtcdError)
    await deleteIfOwner(state, 'job', held.fencingToken)
    await client.deliverLate()
    expect(await client.leaseOf(state.keys.ttl('job'))).toBe('none')
    client.close()
  })

  test('P-16: a release does not touch the next holder’s grant', async () => {
    const { client, state, held } = await holding()
    client.fate = 'arrives-late'
    await expect(deleteIfOwner(state, 'job', held.fencingToken)).rejects.toThrow(EtcdError)
    await deleteIfOwner(state, 'job', held.fencingToken)
    const session = await openSession(state, 'next', 60_000)
    const next = await tryInsert(state, 'job', 'next', session, 60_000)
    if (next === undefined) throw new Error('a released key must be granted')
    await client.deliverLate()
    expect(await extend(state, 'job', next.fencingToken, 60_000)).toBeInstanceOf(LockHandle)
    client.close()
  })
})

test('the token is the revision of the grant: no renewal moves it', async () => {
  const { client, state, held } = await holding()
  for (let renewal = 0; renewal < 5; renewal += 1) {
    const extended = await extend(state, 'job', held.fencingToken, 60_000)
    expect(extended?.fencingToken).toBe(held.fencingToken)
  }
  const stored = await client.range({ key: Buffer.from(state.keys.lock('job')) })
  expect(stored.items[0]?.modRevision).toBe(held.fencingToken)
  client.close()
})

test('a slot that is gone, as after a restore, costs a session and a lock no failure', async () => {
  const { client, state } = await openState()
  const revokeSlot = async () => client.leaseRevoke(await state.slots.leaseFor(60_000))
  await revokeSlot()
  const session = await openSession(state, 'worker', 60_000)
  await revokeSlot()
  // That was the new session's slot, too.
  await expect(tryInsert(state, 'job', 'worker', session, 60_000)).rejects.toThrow(/session/)
  const other = await openSession(state, 'worker', 50_000)
  await revokeSlot()
  expect(await tryInsert(state, 'job', 'worker', other, 60_000)).toBeInstanceOf(LockHandle)
  client.close()
})

test('many calls of one turn share a proposal, and a dead neighbour fails alone', async () => {
  const { client, state } = await openState()
  const session = await openSession(state, 'worker', 60_000)
  const dead = await openSession(state, 'worker', 60_000)
  const carrier = state.sessions.get(dead)?.marker.carrier
  if (carrier === undefined) throw new Error('a session just opened is remembered')
  // Its lease is gone, which etcd answers by refusing the whole proposal.
  await client.leaseRevoke(carrier)
  await tryInsert(state, 'warm', 'worker', session, 60_000)
  const before = client.sent.length
  const results = await Promise.allSettled([
    ...Array.from({ length: 20 }, (_, index) =>
      tryInsert(state, `job-${index}`, 'worker', session, 60_000),
    ),
    tryInsert(state, 'the-dead', 'worker', dead, 60_000),
  ])
  const granted = results.filter(
    (result) => result.status === 'fulfilled' && result.value instanceof LockHandle,
  )
  expect(granted.length).toBeGreaterThanOrEqual(20)
  expect(client.sent[before]?.success.length).toBeGreaterThan(1)
  client.close()
})

test('a store that cannot reach etcd says so: no refusal, no loss', async () => {
  const store = new EtcdStore({ endpoints: ['127.0.0.1:1'], tryMs: 200 })
  await expect(store.start()).rejects.toBeInstanceOf(ContentionError)
  store.close()
})
