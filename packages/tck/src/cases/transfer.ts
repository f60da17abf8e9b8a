import assert from 'node:assert/strict'
import type { NextHolder, Transfer } from '@dlock/lock-api'
import {
  acquire,
  acquireAfresh,
  assertDeadlineCountsFromSending,
  assertEndsInTime,
  assertGone,
  assertHears,
  assertLives,
  LONG_MS,
  letEnd,
  listen,
  need,
  openSession,
  otherTokens,
  SHORT_MS,
} from '../steps.ts'
import type { StoreCase, TestedStore } from '../store-case.ts'

const NOTHING: Transfer = { released: false, granted: undefined }

/** Release and the next grant in one step. */
export const transferCases: readonly StoreCase[] = [
  {
    name: 'a transfer releases the one grant and makes the next, with a higher token',
    needs: ['transfer'],
    async run({ store }) {
      const grant = await acquireAfresh(store, 'job')
      const next = await nextHolder(store)
      const { released, granted } = await transferOf(store)('job', grant.fencingToken, next)
      assert.equal(released, true)
      assert.equal(granted?.key, 'job')
      assert.equal(granted.ownerId, next.ownerId)
      assert.equal(granted.sessionId, next.sessionId)
      assert.ok(granted.fencingToken > grant.fencingToken)
      await assertGone(store, grant)
      assert.equal(await store.deleteIfOwner('job', grant.fencingToken), false)
      assert.deepEqual(await store.locksOf(grant.sessionId), new Set())
      assert.deepEqual(await store.locksOf(next.sessionId), new Set(['job']))
      await assertLives(store, granted)
    },
  },
  {
    name: 'a transfer within one session makes a new grant, for it is another task’s',
    needs: ['transfer'],
    async run({ store }) {
      const grant = await acquireAfresh(store, 'job')
      const next = { ownerId: grant.ownerId, sessionId: grant.sessionId, ttlMs: LONG_MS }
      const { granted } = await transferOf(store)('job', grant.fencingToken, next)
      assert.ok(granted && granted.fencingToken > grant.fencingToken)
      await assertGone(store, grant)
      await assertLives(store, granted)
    },
  },
  {
    name: 'a transfer with any other token changes nothing',
    needs: ['transfer'],
    async run({ store }) {
      const grant = await acquireAfresh(store, 'job')
      const other = await acquireAfresh(store, 'job2')
      const next = await nextHolder(store)
      for (const token of otherTokens(grant, other)) {
        assert.deepEqual(await transferOf(store)('job', token, next), NOTHING)
      }
      assert.deepEqual(await store.locksOf(next.sessionId), new Set())
      await assertLives(store, grant)
      await assertLives(store, other)
    },
  },
  {
    name: 'a transfer of a grant that is gone grants nothing',
    needs: ['transfer'],
    async run({ store }) {
      const next = await nextHolder(store)
      const released = await acquireAfresh(store, 'job')
      await store.deleteIfOwner('job', released.fencingToken)
      assert.deepEqual(await transferOf(store)('job', released.fencingToken, next), NOTHING)
      assert.equal(await store.read('job'), undefined)
    },
  },
  {
    name: 'P-16: a transfer of a grant that was taken over harms nobody',
    needs: ['transfer'],
    async run(given) {
      const { store } = given
      const old = await acquire(store, 'job', await openSession(store), SHORT_MS)
      await letEnd(given, SHORT_MS)
      const current = await acquireAfresh(store, 'job')
      const next = await nextHolder(store)
      assert.deepEqual(await transferOf(store)('job', old.fencingToken, next), NOTHING)
      await assertLives(store, current)
    },
  },
  {
    name: 'a transfer to a dead session releases, and leaves the key free',
    needs: ['transfer'],
    async run(given) {
      const { store } = given
      const grant = await acquireAfresh(store, 'job')
      const next = await nextHolder(store)
      await given.killSession(next.sessionId)
      const transfer = await transferOf(store)('job', grant.fencingToken, next)
      assert.deepEqual(transfer, { released: true, granted: undefined })
      await assertGone(store, grant)
      assert.ok((await acquireAfresh(store, 'job')).fencingToken > grant.fencingToken)
    },
  },
  {
    name: 'one grant transferred to many at once goes to one of them',
    needs: ['transfer'],
    async run({ store }) {
      const grant = await acquireAfresh(store, 'job')
      const nexts = await Promise.all(Array.from({ length: 16 }, () => nextHolder(store)))
      const transfers = await Promise.all(
        nexts.map((next) => transferOf(store)('job', grant.fencingToken, next)),
      )
      const [granted, ...others] = transfers.flatMap((transfer) => transfer.granted ?? [])
      assert.ok(granted)
      assert.equal(others.length, 0)
      assert.equal(transfers.filter(({ released }) => released).length, 1)
      await assertLives(store, granted)
    },
  },
  {
    name: 'FR-03: a transferred lease is as long as its own, and ends in time',
    needs: ['transfer'],
    async run(given) {
      const { store } = given
      const grant = await acquireAfresh(store, 'job')
      const next = { ...(await nextHolder(store)), ttlMs: SHORT_MS }
      const after = await openSession(store, 'after')
      await assertEndsInTime(
        given,
        SHORT_MS,
        () => transferOf(store)('job', grant.fencingToken, next),
        async () => (await store.tryInsert('job', 'after', after, LONG_MS)) !== undefined,
      )
    },
  },
  {
    name: 'FR-11: the deadline of a transferred grant counts from before the request was sent',
    needs: ['transfer'],
    async run(given) {
      const grant = await acquireAfresh(given.store, 'job')
      const next = await nextHolder(given.store)
      await given.waitMs(10)
      await assertDeadlineCountsFromSending(given, LONG_MS, async () => {
        return (await transferOf(given.store)('job', grant.fencingToken, next)).granted
      })
    },
  },
  {
    name: 'a transfer does not forget who waits elsewhere',
    needs: ['transfer', 'waiting'],
    async run(given) {
      const replica = await given.openReplica()
      const listener = await listen(replica)
      const grant = await acquireAfresh(given.store, 'job')
      assert.ok((await need(replica, 'waiting').want('job')) !== undefined)
      const next = await nextHolder(given.store)
      const { granted } = await transferOf(given.store)('job', grant.fencingToken, next)
      assert.ok(granted)
      await given.store.deleteIfOwner('job', granted.fencingToken)
      await assertHears(given, listener, 'job')
      await listener.stop()
    },
  },
  {
    name: 'a wanted grant that is transferred to a dead session is announced as freed',
    needs: ['transfer', 'waiting'],
    async run(given) {
      const listener = await listen(given.store)
      const grant = await acquireAfresh(given.store, 'job')
      assert.ok((await need(given.store, 'waiting').want('job')) !== undefined)
      const next = await nextHolder(given.store)
      await given.killSession(next.sessionId)
      await transferOf(given.store)('job', grant.fencingToken, next)
      await assertHears(given, listener, 'job')
      await listener.stop()
    },
  },
]

async function nextHolder(store: TestedStore): Promise<NextHolder> {
  return { ownerId: 'next', sessionId: await openSession(store, 'next'), ttlMs: LONG_MS }
}

function transferOf(store: TestedStore) {
  const capability = need(store, 'transfer')
  return (key: string, fencingToken: bigint, next: NextHolder): Promise<Transfer> =>
    capability.transfer(key, fencingToken, next)
}
