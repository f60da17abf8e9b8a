import assert from 'node:assert/strict'
import { grantedTtlMs } from '@dlock/lock-api'
import {
  acquire,
  acquireAfresh,
  assertDeadlineCountsFromSending,
  assertEndsInTime,
  assertGone,
  assertLives,
  boundsOf,
  LONG_MS,
  letEnd,
  openSession,
  SHORT_MS,
} from '../steps.ts'
import type { StoreCase } from '../store-case.ts'

const THIRTY_DAYS_MS = 30 * 24 * 3_600_000

/** Leases end by themselves: never early, late by no more than declared, and before any reaper. */
export const expiryCases: readonly StoreCase[] = [
  ...[1, SHORT_MS, 999, 1_500].map(
    (ttlMs): StoreCase => ({
      name: `FR-03, P-14: an unrenewed lease of ${ttlMs} ms ends in time, and the key can be had`,
      async run(given) {
        const holder = await openSession(given.store)
        const next = await openSession(given.store, 'next')
        await assertEndsInTime(
          given,
          ttlMs,
          () => acquire(given.store, 'job', holder, ttlMs),
          async () => (await given.store.tryInsert('job', 'next', next, LONG_MS)) !== undefined,
        )
      },
    }),
  ),
  ...[1, 999, 1_500, THIRTY_DAYS_MS].map(
    (ttlMs): StoreCase => ({
      name: `P-14: a lease of ${ttlMs} ms is granted exactly, or rounded up as declared`,
      async run(given) {
        const { store } = given
        const sessionId = await openSession(store)
        await assertDeadlineCountsFromSending(given, ttlMs, () =>
          store.tryInsert('job', 'worker', sessionId, ttlMs),
        )
        const info = await store.read('job')
        if (info === undefined) return // ended already, as a short one may
        const shownMs = info.expiresAt.getTime() - info.acquiredAt.getTime()
        assert.ok(shownMs >= grantedTtlMs(ttlMs, boundsOf(store)) - 1, `shows ${shownMs} ms`)
      },
    }),
  ),
  {
    name: 'P-14: a lease of 30 days does not end at once',
    async run(given) {
      const sessionId = await given.store.openSession('worker', THIRTY_DAYS_MS)
      const grant = await acquire(given.store, 'job', sessionId, THIRTY_DAYS_MS)
      await letEnd(given, SHORT_MS)
      assert.equal(await given.store.heartbeat(sessionId, THIRTY_DAYS_MS), true)
      await assertLives(given.store, grant)
    },
  },
  {
    name: 'FR-06: an expired grant is lost, though nobody reaped it and nobody else asked',
    async run(given) {
      const grant = await acquire(given.store, 'job', await openSession(given.store), SHORT_MS)
      await letEnd(given, SHORT_MS)
      await assertGone(given.store, grant)
      await assertLives(given.store, await acquireAfresh(given.store, 'job'))
      await assertGone(given.store, grant)
    },
  },
  {
    name: 'decision 7: a grant that nobody renews expires while its session lives on',
    async run(given) {
      const sessionId = await openSession(given.store)
      const lapsed = await acquire(given.store, 'job', sessionId, SHORT_MS)
      const kept = await acquire(given.store, 'job2', sessionId, LONG_MS)
      await letEnd(given, SHORT_MS)
      assert.equal(await given.store.heartbeat(sessionId, LONG_MS), true)
      await assertGone(given.store, lapsed)
      assert.deepEqual(await given.store.locksOf(sessionId), new Set(['job2']))
      await assertLives(given.store, kept)
    },
  },
  {
    name: 'P-16: after a take-over the old holder is told lost and not held, and harms nobody',
    async run(given) {
      const { store } = given
      const old = await acquire(store, 'job', await openSession(store), SHORT_MS)
      await letEnd(given, SHORT_MS)
      const current = await acquireAfresh(store, 'job')
      assert.ok(current.fencingToken > old.fencingToken)
      assert.equal(await store.extend('job', old.fencingToken, LONG_MS), undefined)
      assert.equal(await store.deleteIfOwner('job', old.fencingToken), false)
      assert.equal((await store.read('job'))?.fencingToken, current.fencingToken)
      await assertLives(store, current)
    },
  },
  {
    name: 'decision 3: a session that asks again for its expired grant gets a new one',
    async run(given) {
      const sessionId = await openSession(given.store)
      const old = await acquire(given.store, 'job', sessionId, SHORT_MS)
      await letEnd(given, SHORT_MS)
      const fresh = await acquire(given.store, 'job', sessionId)
      assert.ok(fresh.fencingToken > old.fencingToken)
      await assertGone(given.store, old)
      await assertLives(given.store, fresh)
    },
  },
  {
    name: 'FR-05: releasing an expired grant harms nobody, whatever it says',
    async run(given) {
      const { store } = given
      const old = await acquire(store, 'job', await openSession(store), SHORT_MS)
      await letEnd(given, SHORT_MS)
      assert.equal(typeof (await store.deleteIfOwner('job', old.fencingToken)), 'boolean')
      const current = await acquireAfresh(store, 'job')
      assert.ok(current.fencingToken > old.fencingToken)
      await assertLives(store, current)
    },
  },
]
