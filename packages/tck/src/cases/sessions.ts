import assert from 'node:assert/strict'
import { grantedTtlMs, type LockHandle, SessionDeadError } from '@dlock/lock-api'
import {
  acquire,
  acquireAfresh,
  assertEndsInTime,
  assertGone,
  assertGrantsNothing,
  assertLives,
  boundsOf,
  LONG_MS,
  letEnd,
  need,
  openSession,
  SHORT_MS,
  whileItRuns,
} from '../steps.ts'
import type { StoreCase, StoreNamespace } from '../store-case.ts'

/** Every way in which a session is dead. Each makes one, with a lock on it if it can have one. */
const WAYS_TO_BE_DEAD: Readonly<Record<string, (given: StoreNamespace) => Promise<string>>> = {
  'was never opened': async () => '00000000-0000-4000-8000-000000000000',
  'has no id that this store would give': async () => 'no such session',
  'has expired': async (given) => {
    const sessionId = await given.store.openSession('worker', SHORT_MS)
    await letEnd(given, SHORT_MS)
    return sessionId
  },
  'was closed': async ({ store }) => {
    const sessionId = await openSession(store)
    await store.closeSession(sessionId)
    return sessionId
  },
  'was killed': async (given) => {
    const { store } = given
    const sessionId = await openSession(store)
    await given.killSession(sessionId)
    return sessionId
  },
}

/** Every way in which a session dies under a lock: each grants "job" for long, and kills. */
const WAYS_TO_DIE: Readonly<Record<string, (given: StoreNamespace) => Promise<LockHandle>>> = {
  expired: async (given) => {
    const { ttlMs, result } = await whileItRuns(given, async (shortMs) => {
      const sessionId = await given.store.openSession('worker', shortMs)
      return given.store.tryInsert('job', 'worker', sessionId, LONG_MS).catch(undefinedIfDead)
    })
    await letEnd(given, ttlMs)
    return result
  },
  'was closed': async ({ store }) => {
    const grant = await acquireAfresh(store, 'job')
    assert.equal(await store.closeSession(grant.sessionId), 1)
    return grant
  },
  'was killed': async (given) => {
    const { store } = given
    const grant = await acquireAfresh(store, 'job')
    await given.killSession(grant.sessionId)
    return grant
  },
}

/** Sessions: they carry every lock, and take it with them. */
export const sessionCases: readonly StoreCase[] = [
  ...Object.entries(WAYS_TO_BE_DEAD).flatMap(([how, makeDead]): StoreCase[] => [
    {
      name: `a session that ${how} is granted nothing`,
      async run(given) {
        await assertGrantsNothing(given.store, await makeDead(given))
      },
    },
    {
      name: `a session that ${how} is not brought to life by a heartbeat`,
      async run(given) {
        const sessionId = await makeDead(given)
        assert.equal(await given.store.heartbeat(sessionId, LONG_MS), false)
        assert.equal(await given.store.heartbeat(sessionId, LONG_MS), false)
        await assertGrantsNothing(given.store, sessionId)
      },
    },
    {
      name: `a session that ${how} holds nothing, and closing it releases nothing`,
      async run(given) {
        const sessionId = await makeDead(given)
        assert.deepEqual(await given.store.locksOf(sessionId), new Set())
        assert.equal(await given.store.closeSession(sessionId), 0)
        await assertGrantsNothing(given.store, sessionId)
      },
    },
    {
      name: `a session that ${how} is described as dead`,
      needs: ['sessions'],
      async run(given) {
        const sessionId = await makeDead(given)
        const { state } = await need(given.store, 'sessions').describeSession(sessionId)
        assert.notEqual(state, 'live')
      },
    },
  ]),
  ...Object.entries(WAYS_TO_DIE).map(
    ([how, grantAndKill]): StoreCase => ({
      name: `FR-04: the lock of a session that ${how} is lost, and can be had at once`,
      async run(given) {
        const { store } = given
        const grant = await grantAndKill(given)
        await assertGone(store, grant)
        const next = await acquireAfresh(store, 'job')
        assert.ok(next.fencingToken > grant.fencingToken)
        await assertGone(store, grant)
        assert.equal(await store.deleteIfOwner('job', grant.fencingToken), false)
        await assertLives(store, next)
      },
    }),
  ),
  {
    name: 'a session that nobody opened is unknown, not expired',
    async run({ store }) {
      const sessionId = '00000000-0000-4000-8000-000000000000'
      await assert.rejects(
        store.tryInsert('job', 'worker', sessionId, LONG_MS),
        (error) => error instanceof SessionDeadError && error.state === 'unknown',
      )
    },
  },
  {
    name: 'FR-04: a session that gets no heartbeat ends in time, and its locks can be had',
    async run(given) {
      const { store } = given
      const next = await openSession(store, 'next')
      await assertEndsInTime(
        given,
        SHORT_MS,
        async () => {
          const sessionId = await store.openSession('worker', SHORT_MS)
          await store.tryInsert('job', 'worker', sessionId, LONG_MS).catch(undefinedIfDead)
        },
        async () => (await store.tryInsert('job', 'next', next, LONG_MS)) !== undefined,
      )
    },
  },
  {
    name: 'a heartbeat prolongs a session, and with it the life of its locks',
    async run(given) {
      const { store } = given
      const { ttlMs, result } = await whileItRuns(given, async (shortMs) => {
        const sessionId = await store.openSession('worker', shortMs)
        return (await store.heartbeat(sessionId, LONG_MS)) ? sessionId : undefined
      })
      const grant = await acquire(store, 'job', result)
      await letEnd(given, ttlMs)
      assert.equal(await store.heartbeat(result, LONG_MS), true)
      await assertLives(store, grant)
    },
  },
  {
    name: 'a heartbeat never shortens a session',
    async run(given) {
      const grant = await acquireAfresh(given.store, 'job')
      assert.equal(await given.store.heartbeat(grant.sessionId, SHORT_MS), true)
      await letEnd(given, SHORT_MS)
      await assertLives(given.store, grant)
    },
  },
  {
    name: 'a heartbeat prolongs no lease: that is what extending is for',
    async run(given) {
      const sessionId = await openSession(given.store)
      const grant = await acquire(given.store, 'job', sessionId, SHORT_MS)
      await given.store.heartbeat(sessionId, LONG_MS)
      await letEnd(given, SHORT_MS)
      await assertGone(given.store, grant)
    },
  },
  {
    name: 'FR-04: closing a session releases every lock on it and no other, and says how many',
    async run({ store }) {
      const sessionId = await openSession(store)
      const own = [await acquire(store, 'job', sessionId), await acquire(store, 'job/1', sessionId)]
      const other = await acquireAfresh(store, 'job2')
      assert.equal(await store.closeSession(sessionId), 2)
      for (const grant of own) await assertGone(store, grant)
      await assertLives(store, other)
      assert.equal(await store.closeSession(sessionId), 0)
    },
  },
  {
    name: 'closing a session does not count what had ended already',
    async run(given) {
      const { store } = given
      const sessionId = await openSession(store)
      await acquire(store, 'expired', sessionId, SHORT_MS)
      await letEnd(given, SHORT_MS)
      const released = await acquire(store, 'released', sessionId)
      await store.deleteIfOwner('released', released.fencingToken)
      await acquire(store, 'live', sessionId)
      assert.equal(await store.closeSession(sessionId), 1)
    },
  },
  {
    name: 'the locks of a session are the keys of its live grants, and of nobody else',
    async run({ store }) {
      const [one, two] = [await openSession(store), await openSession(store)]
      const job = await acquire(store, 'job', one)
      await acquire(store, 'job/1', one)
      await acquire(store, 'job2', two)
      assert.deepEqual(await store.locksOf(one), new Set(['job', 'job/1']))
      await store.deleteIfOwner('job', job.fencingToken)
      await store.revoke('job/1', 'operator', 'for the test')
      assert.deepEqual(await store.locksOf(one), new Set())
      assert.deepEqual(await store.locksOf(two), new Set(['job2']))
    },
  },
  {
    name: 'session ids do not repeat',
    async run({ store }) {
      const opened = await Promise.all(Array.from({ length: 50 }, () => openSession(store)))
      assert.equal(new Set(opened).size, 50)
    },
  },
  {
    name: 'a live session is described with its owner and what it has left',
    needs: ['sessions'],
    async run(given) {
      const sessionId = await openSession(given.store, 'worker-7')
      const sessions = need(given.store, 'sessions')
      const described = await sessions.describeSession(sessionId)
      assert.ok(described.state === 'live')
      assert.equal(described.ownerId, 'worker-7')
      const { maxLatenessMs } = boundsOf(given.store)
      const most = grantedTtlMs(LONG_MS, boundsOf(given.store)) + maxLatenessMs
      assert.ok(described.remainingMs > 0 && described.remainingMs <= most)
    },
  },
]

function undefinedIfDead(error: unknown): undefined {
  if (!(error instanceof SessionDeadError)) throw error
}
