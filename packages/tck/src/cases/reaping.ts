import assert from 'node:assert/strict'
import type { LockHandle } from '@dlock/lock-api'
import {
  acquire,
  acquireAfresh,
  assertGone,
  assertLives,
  FAR_FUTURE,
  LONG_MS,
  letEnd,
  openSession,
  SHORT_MS,
} from '../steps.ts'
import type { StoreCase, StoreNamespace } from '../store-case.ts'

const LONG_AGO = new Date('2000-01-01T00:00:00Z')

/** Reaping clears away; it decides nothing. */
export const reapingCases: readonly StoreCase[] = [
  {
    name: 'reaping counts each expired grant once, and then finds nothing',
    async run(given) {
      const lapsed = await lapseSome(given, 5)
      assert.equal(await given.store.reapExpired(FAR_FUTURE), 5)
      assert.equal(await given.store.reapExpired(FAR_FUTURE), 0)
      for (const grant of lapsed) await assertGone(given.store, grant)
    },
  },
  {
    name: 'reaping on many replicas at once counts each expired grant once',
    async run(given) {
      const replica = await given.openReplica()
      await lapseSome(given, 20)
      const counts = await Promise.all(
        [given.store, replica, given.store, replica].map((store) => store.reapExpired(FAR_FUTURE)),
      )
      assert.equal(
        counts.reduce((sum, count) => sum + count, 0),
        20,
      )
    },
  },
  {
    name: 'reaping never takes what lives, even for a caller whose clock runs far ahead',
    async run({ store }) {
      const grant = await acquireAfresh(store, 'job')
      assert.equal(await store.reapExpired(FAR_FUTURE), 0)
      assert.equal(await store.heartbeat(grant.sessionId, LONG_MS), true)
      assert.equal((await store.read('job'))?.fencingToken, grant.fencingToken)
      await assertLives(store, grant)
    },
  },
  {
    name: 'reaping leaves what had not expired at the instant given',
    async run(given) {
      await lapseSome(given, 3)
      assert.equal(await given.store.reapExpired(LONG_AGO), 0)
      assert.equal(await given.store.reapExpired(FAR_FUTURE), 3)
    },
  },
  {
    name: 'reaping clears the locks of a dead session, and the key gets a higher token',
    async run(given) {
      const orphan = await acquireAfresh(given.store, 'job')
      await given.killSession(orphan.sessionId)
      await given.store.reapExpired(FAR_FUTURE)
      assert.equal(await given.store.reapExpired(FAR_FUTURE), 0)
      await assertGone(given.store, orphan)
      assert.ok((await acquireAfresh(given.store, 'job')).fencingToken > orphan.fencingToken)
    },
  },
  {
    name: 'reaping does not disturb a take-over at the same time',
    async run(given) {
      const { store } = given
      const next = await openSession(store, 'next')
      for (const old of await lapseSome(given, 10)) {
        const [taken] = await Promise.all([
          store.tryInsert(old.key, 'next', next, LONG_MS),
          store.reapExpired(FAR_FUTURE),
          store.reapExpired(FAR_FUTURE),
        ])
        assert.ok(taken, 'an expired key must be granted')
        assert.equal(await store.reapExpired(FAR_FUTURE), 0)
        await assertLives(store, taken)
      }
    },
  },
]

async function lapseSome(given: StoreNamespace, count: number): Promise<LockHandle[]> {
  const sessionId = await openSession(given.store)
  const grants: LockHandle[] = []
  for (let index = 0; index < count; index++) {
    grants.push(await acquire(given.store, `job/${index}`, sessionId, SHORT_MS))
  }
  await letEnd(given, SHORT_MS)
  return grants
}
