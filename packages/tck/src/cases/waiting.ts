import assert from 'node:assert/strict'
import { grantedTtlMs, type LockHandle } from '@dlock/lock-api'
import {
  acquire,
  acquireAfresh,
  assertHears,
  boundsOf,
  LONG_MS,
  letEnd,
  listen,
  need,
  openSession,
  SHORT_MS,
} from '../steps.ts'
import type { StoreCase, StoreNamespace } from '../store-case.ts'

/** Every way in which somebody ends a grant. Time and dead processes announce nothing. */
const WAYS_TO_FREE: Readonly<
  Record<string, (given: StoreNamespace, grant: LockHandle) => Promise<unknown>>
> = {
  release: ({ store }, grant) => store.deleteIfOwner(grant.key, grant.fencingToken),
  revocation: ({ store }, grant) => store.revoke(grant.key, 'operator', 'for the test'),
  'the end of its session': ({ store }, grant) => store.closeSession(grant.sessionId),
}

/** A waiter sleeps until it is woken, and no wake-up is lost. */
export const waitingCases: readonly StoreCase[] = [
  {
    name: 'wanting what can be had now says so: free, expired, or of a dead session',
    needs: ['waiting'],
    async run(given) {
      const waiting = need(given.store, 'waiting')
      assert.equal(await waiting.want('never-held'), undefined)
      const released = await acquireAfresh(given.store, 'released')
      await given.store.deleteIfOwner('released', released.fencingToken)
      assert.equal(await waiting.want('released'), undefined)
      await acquire(given.store, 'expired', await openSession(given.store), SHORT_MS)
      const orphan = await acquireAfresh(given.store, 'orphan')
      await given.killSession(orphan.sessionId)
      await letEnd(given, SHORT_MS)
      assert.equal(await waiting.want('expired'), undefined)
      assert.equal(await waiting.want('orphan'), undefined)
    },
  },
  {
    name: 'wanting a live grant says when its lease ends, or its session if that is sooner',
    needs: ['waiting'],
    async run({ store }) {
      const waiting = need(store, 'waiting')
      const bounds = boundsOf(store)
      const most = (ttlMs: number): number => grantedTtlMs(ttlMs, bounds) + bounds.maxLatenessMs
      await acquire(store, 'short-lease', await openSession(store), LONG_MS / 2)
      const leaseMs = await waiting.want('short-lease')
      assert.ok(leaseMs !== undefined && leaseMs > 0 && leaseMs <= most(LONG_MS / 2))
      const mortal = await store.openSession('worker', LONG_MS / 2)
      await acquire(store, 'short-session', mortal, LONG_MS)
      const sessionMs = await waiting.want('short-session')
      assert.ok(sessionMs !== undefined && sessionMs > 0 && sessionMs <= most(LONG_MS / 2))
    },
  },
  {
    name: 'who waits as long as wanting said finds the key free, if nobody prolonged the grant',
    needs: ['waiting'],
    async run(given) {
      const waiting = need(given.store, 'waiting')
      await acquire(given.store, 'job', await openSession(given.store), SHORT_MS)
      const waitMs = await waiting.want('job')
      if (waitMs !== undefined) await given.waitMs(waitMs + boundsOf(given.store).maxLatenessMs)
      await acquireAfresh(given.store, 'job')
    },
  },
  ...Object.entries(WAYS_TO_FREE).map(
    ([how, free]): StoreCase => ({
      name: `${how} of a wanted grant is announced to everybody, at every replica`,
      needs: ['waiting'],
      async run(given) {
        const replica = await given.openReplica()
        const listeners = [await listen(given.store), await listen(replica)]
        const grant = await acquireAfresh(given.store, 'job')
        assert.ok((await need(replica, 'waiting').want('job')) !== undefined)
        await free(given, grant)
        for (const listener of listeners) await assertHears(given, listener, 'job')
        for (const listener of listeners) await listener.stop()
      },
    }),
  ),
  {
    name: 'a release between a failed attempt and wanting is not missed: wanting says so',
    needs: ['waiting'],
    async run({ store }) {
      const grant = await acquireAfresh(store, 'job')
      const waiter = await openSession(store, 'waiter')
      assert.equal(await store.tryInsert('job', 'waiter', waiter, LONG_MS), undefined)
      await store.deleteIfOwner('job', grant.fencingToken)
      assert.equal(await need(store, 'waiting').want('job'), undefined)
      assert.ok(await store.tryInsert('job', 'waiter', waiter, LONG_MS))
    },
  },
  {
    name: 'a release at the same time as wanting is not missed: it is said or announced',
    needs: ['waiting'],
    async run(given) {
      const replica = await given.openReplica()
      const listener = await listen(replica)
      for (let round = 0; round < 20; round++) {
        const key = `job/${round}`
        const grant = await acquireAfresh(given.store, key)
        const waiting = need(replica, 'waiting')
        const wanted = round % 2 === 0 ? waiting.want(key) : undefined
        const released = given.store.deleteIfOwner(key, grant.fencingToken)
        const waitMs = await (wanted ?? waiting.want(key))
        await released
        if (waitMs !== undefined) await assertHears(given, listener, key)
      }
      await listener.stop()
    },
  },
  {
    name: 'waiter after waiter is woken, each by the end of the grant that it wanted',
    needs: ['waiting'],
    async run(given) {
      const listener = await listen(given.store)
      for (let turn = 1; turn <= 5; turn++) {
        const grant = await acquireAfresh(given.store, 'job')
        assert.ok((await need(given.store, 'waiting').want('job')) !== undefined)
        await given.store.deleteIfOwner('job', grant.fencingToken)
        await assertHears(given, listener, 'job', turn)
      }
      await listener.stop()
    },
  },
  {
    name: 'extending a wanted grant, or asking for it again, does not forget that it is wanted',
    needs: ['waiting'],
    async run(given) {
      const listener = await listen(given.store)
      const grant = await acquireAfresh(given.store, 'job')
      assert.ok((await need(given.store, 'waiting').want('job')) !== undefined)
      await given.store.extend('job', grant.fencingToken, LONG_MS)
      await acquire(given.store, 'job', grant.sessionId)
      await given.store.deleteIfOwner('job', grant.fencingToken)
      await assertHears(given, listener, 'job')
      await listener.stop()
    },
  },
  {
    name: 'the end of a wanted grant announces its own key, however much others look like it',
    needs: ['waiting'],
    async run(given) {
      const listener = await listen(given.store)
      const waiting = need(given.store, 'waiting')
      const keys = ['job', 'job/1', "job'2", 'job "3"', '작업\u{1f512}', 'k'.repeat(512)]
      for (const key of keys) {
        const grant = await acquireAfresh(given.store, key)
        assert.ok((await waiting.want(key)) !== undefined)
        await given.store.deleteIfOwner(key, grant.fencingToken)
        await assertHears(given, listener, key)
      }
      await listener.stop()
    },
  },
  {
    name: 'who stopped listening hears nothing more',
    needs: ['waiting'],
    async run(given) {
      const [gone, stays] = [await listen(given.store), await listen(given.store)]
      await gone.stop()
      const grant = await acquireAfresh(given.store, 'job')
      assert.ok((await need(given.store, 'waiting').want('job')) !== undefined)
      await given.store.deleteIfOwner('job', grant.fencingToken)
      await assertHears(given, stays, 'job')
      assert.equal(gone.heard('job'), 0)
      await stays.stop()
    },
  },
]
