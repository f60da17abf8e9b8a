import assert from 'node:assert/strict'
import {
  acquire,
  acquireAfresh,
  assertDeadlineCountsFromSending,
  assertGone,
  assertLives,
  LONG_MS,
  letEnd,
  openSession,
  otherTokens,
  SHORT_MS,
  whileItRuns,
} from '../steps.ts'
import type { StoreCase } from '../store-case.ts'

/** Insertion, extension, release and reading of one key. */
export const grantCases: readonly StoreCase[] = [
  {
    name: 'a free key is granted, and the handle says to whom',
    async run({ store }) {
      const sessionId = await openSession(store, 'worker-7')
      const handle = await store.tryInsert('job', 'worker-7', sessionId, LONG_MS)
      assert.equal(handle?.key, 'job')
      assert.equal(handle.ownerId, 'worker-7')
      assert.equal(handle.sessionId, sessionId)
      assert.ok(handle.fencingToken > 0n)
    },
  },
  {
    name: 'FR-01: a key that another session holds is refused, and its holder is unharmed',
    async run({ store }) {
      const grant = await acquireAfresh(store, 'job')
      const other = await openSession(store, 'other')
      assert.equal(await store.tryInsert('job', 'other', other, LONG_MS), undefined)
      assert.deepEqual(await store.locksOf(other), new Set())
      await assertLives(store, grant)
    },
  },
  {
    name: 'P-17: two sessions of one owner name exclude each other, and their tokens differ',
    async run({ store }) {
      const [first, second] = [await openSession(store, 'twin'), await openSession(store, 'twin')]
      const grant = await store.tryInsert('job', 'twin', first, LONG_MS)
      assert.ok(grant)
      assert.equal(await store.tryInsert('job', 'twin', second, LONG_MS), undefined)
      assert.equal(await store.deleteIfOwner('job', grant.fencingToken), true)
      const next = await store.tryInsert('job', 'twin', second, LONG_MS)
      assert.ok(next && next.fencingToken > grant.fencingToken)
    },
  },
  {
    name: 'decision 3: a session that asks again for its live grant gets it, with the same token',
    async run({ store }) {
      const sessionId = await openSession(store)
      const grant = await acquire(store, 'job', sessionId)
      for (let retry = 0; retry < 3; retry++) {
        const again = await acquire(store, 'job', sessionId)
        assert.equal(again.fencingToken, grant.fencingToken)
        assert.equal(again.sessionId, sessionId)
      }
      await assertLives(store, grant)
    },
  },
  {
    name: 'decision 3: asking again never shortens the lease',
    async run(given) {
      const sessionId = await openSession(given.store)
      const grant = await acquire(given.store, 'job', sessionId, LONG_MS)
      const again = await acquire(given.store, 'job', sessionId, SHORT_MS)
      assert.equal(again.fencingToken, grant.fencingToken)
      await letEnd(given, SHORT_MS)
      await assertLives(given.store, grant)
    },
  },
  {
    name: 'decision 3: the lease runs as long as the answer to the repeated question says',
    async run(given) {
      const sessionId = await openSession(given.store)
      await acquire(given.store, 'job', sessionId, SHORT_MS)
      const again = await acquire(given.store, 'job', sessionId, LONG_MS)
      await letEnd(given, SHORT_MS)
      await assertLives(given.store, again)
    },
  },
  {
    name: 'FR-06: extending keeps the token and everything else, and expires no earlier',
    async run({ store }) {
      const grant = await acquireAfresh(store, 'job')
      const extended = await store.extend('job', grant.fencingToken, 2 * LONG_MS)
      assert.equal(extended?.fencingToken, grant.fencingToken)
      assert.equal(extended.key, 'job')
      assert.equal(extended.ownerId, grant.ownerId)
      assert.equal(extended.sessionId, grant.sessionId)
      assert.ok(extended.serverExpiry >= grant.serverExpiry)
    },
  },
  {
    name: 'FR-06: extending prolongs the lease',
    async run(given) {
      const sessionId = await openSession(given.store)
      const { ttlMs, result } = await whileItRuns(given, async (shortMs) => {
        const grant = await acquire(given.store, 'job', sessionId, shortMs)
        return given.store.extend('job', grant.fencingToken, LONG_MS)
      })
      await letEnd(given, ttlMs)
      await assertLives(given.store, result)
    },
  },
  {
    name: 'FR-06: extending never shortens the lease',
    async run(given) {
      const grant = await acquireAfresh(given.store, 'job')
      const extended = await given.store.extend('job', grant.fencingToken, SHORT_MS)
      assert.equal(extended?.fencingToken, grant.fencingToken)
      await letEnd(given, SHORT_MS)
      await assertLives(given.store, grant)
    },
  },
  {
    name: 'FR-06: extending with any other token, or under another key, says lost and harms nobody',
    async run({ store }) {
      const grant = await acquireAfresh(store, 'job')
      const other = await acquireAfresh(store, 'job2')
      for (const token of otherTokens(grant, other)) {
        assert.equal(await store.extend('job', token, LONG_MS), undefined)
      }
      assert.equal(await store.extend('nobody-had-it', grant.fencingToken, LONG_MS), undefined)
      assert.equal(await store.read('nobody-had-it'), undefined)
      await assertLives(store, grant)
      await assertLives(store, other)
    },
  },
  {
    name: 'FR-05: releasing removes the grant, once',
    async run({ store }) {
      const grant = await acquireAfresh(store, 'job')
      assert.equal(await store.deleteIfOwner('job', grant.fencingToken), true)
      await assertGone(store, grant)
      assert.equal(await store.deleteIfOwner('job', grant.fencingToken), false)
      await assertLives(store, await acquireAfresh(store, 'job'))
    },
  },
  {
    name: 'FR-05: releasing with any other token, or under another key, removes nothing',
    async run({ store }) {
      const grant = await acquireAfresh(store, 'job')
      const other = await acquireAfresh(store, 'job2')
      for (const token of otherTokens(grant, other)) {
        assert.equal(await store.deleteIfOwner('job', token), false)
      }
      assert.equal(await store.deleteIfOwner('nobody-had-it', grant.fencingToken), false)
      await assertLives(store, grant)
      await assertLives(store, other)
    },
  },
  {
    name: 'FR-05: a release that arrives twice does not touch the next grant',
    async run({ store }) {
      const grant = await acquireAfresh(store, 'job')
      await store.deleteIfOwner('job', grant.fencingToken)
      const next = await acquireAfresh(store, 'job')
      assert.equal(await store.deleteIfOwner('job', grant.fencingToken), false)
      await assertLives(store, next)
    },
  },
  {
    name: 'P-20: an extension that arrives after the release does not bring the lock back',
    async run({ store }) {
      const grant = await acquireAfresh(store, 'job')
      await store.deleteIfOwner('job', grant.fencingToken)
      assert.equal(await store.extend('job', grant.fencingToken, LONG_MS), undefined)
      assert.equal(await store.read('job'), undefined)
      await acquireAfresh(store, 'job')
    },
  },
  {
    name: 'FR-07: reading shows the live grant, and nothing of a key that nobody holds',
    async run({ store }) {
      assert.equal(await store.read('job'), undefined)
      const sessionId = await openSession(store, 'worker-7')
      const grant = await store.tryInsert('job', 'worker-7', sessionId, LONG_MS)
      const info = await store.read('job')
      assert.ok(grant && info)
      assert.equal(info.key, 'job')
      assert.equal(info.ownerId, 'worker-7')
      assert.equal(info.fencingToken, grant.fencingToken)
      assert.ok(info.expiresAt > info.acquiredAt)
      assert.ok(info.waiterCount >= 0)
      assert.equal(await store.read('job2'), undefined)
    },
  },
  {
    name: 'FR-11: the deadline of a grant counts from before the request was sent',
    async run(given) {
      const sessionId = await openSession(given.store)
      await assertDeadlineCountsFromSending(given, LONG_MS, () =>
        given.store.tryInsert('job', 'worker', sessionId, LONG_MS),
      )
    },
  },
  {
    name: 'FR-11: the deadline of a repeated or extended grant counts from that request',
    async run(given) {
      const grant = await acquireAfresh(given.store, 'job')
      await given.waitMs(10)
      await assertDeadlineCountsFromSending(given, LONG_MS, () =>
        given.store.tryInsert('job', 'worker', grant.sessionId, LONG_MS),
      )
      await given.waitMs(10)
      await assertDeadlineCountsFromSending(given, LONG_MS, () =>
        given.store.extend('job', grant.fencingToken, LONG_MS),
      )
    },
  },
  {
    name: 'the backend has a name, for a metric label, and keeps it',
    async run(given) {
      const { store } = given
      assert.match(store.backendId(), /^[a-z][a-z0-9-]*$/)
      assert.equal((await given.openReplica()).backendId(), store.backendId())
    },
  },
]
