import assert from 'node:assert/strict'
import { acquire, acquireAfresh, assertGone, assertLives, LONG_MS, openSession } from '../steps.ts'
import type { StoreCase } from '../store-case.ts'

/** Any replica serves any call: nothing that decides is kept in one process. */
export const replicaCases: readonly StoreCase[] = [
  {
    name: 'what one replica grants, another refuses, shows, extends and releases',
    async run(given) {
      const { store } = given
      const replica = await given.openReplica()
      const grant = await acquireAfresh(store, 'job')
      const rival = await openSession(replica, 'rival')
      assert.equal(await replica.tryInsert('job', 'rival', rival, LONG_MS), undefined)
      assert.equal((await replica.read('job'))?.fencingToken, grant.fencingToken)
      const extended = await replica.extend('job', grant.fencingToken, LONG_MS)
      assert.equal(extended?.fencingToken, grant.fencingToken)
      assert.equal(await replica.deleteIfOwner('job', grant.fencingToken), true)
      await assertGone(store, grant)
    },
  },
  {
    name: 'a session opened at one replica lives, holds and closes at another',
    async run(given) {
      const { store } = given
      const replica = await given.openReplica()
      const sessionId = await openSession(store)
      assert.equal(await replica.heartbeat(sessionId, LONG_MS), true)
      const grant = await acquire(replica, 'job', sessionId)
      assert.deepEqual(await store.locksOf(sessionId), new Set(['job']))
      assert.equal(await replica.closeSession(sessionId), 1)
      assert.equal(await store.heartbeat(sessionId, LONG_MS), false)
      await assertGone(store, grant)
    },
  },
  {
    name: 'decision 3: a retry that reaches another replica gets the same grant',
    async run(given) {
      const { store } = given
      const sessionId = await openSession(store)
      const grant = await acquire(store, 'job', sessionId)
      const again = await acquire(await given.openReplica(), 'job', sessionId)
      assert.equal(again.fencingToken, grant.fencingToken)
      await assertLives(store, grant)
    },
  },
]
