import assert from 'node:assert/strict'
import { type LockHandle, SessionDeadError } from '@dlock/lock-api'
import {
  acquire,
  acquireAfresh,
  assertGone,
  assertLives,
  LONG_MS,
  letEnd,
  openSession,
  SHORT_MS,
} from '../steps.ts'
import type { StoreCase, TestedStore } from '../store-case.ts'

const CALLERS = 32

/** FR-01, INV-06: whatever is asked at the same time, from however many replicas. */
export const concurrencyCases: readonly StoreCase[] = [
  {
    name: 'INV-06: many sessions that ask for one free key at once get exactly one grant',
    async run(given) {
      const { store } = given
      const stores = [store, await given.openReplica()]
      for (let round = 0; round < 5; round++) {
        const winner = await race(stores, 'job')
        await assertLives(store, winner)
        await store.deleteIfOwner('job', winner.fencingToken)
      }
    },
  },
  {
    name: 'INV-06: many sessions that take over one expired key at once get exactly one grant',
    async run(given) {
      const stores = [given.store, await given.openReplica()]
      const old = await acquire(given.store, 'job', await openSession(given.store), SHORT_MS)
      await letEnd(given, SHORT_MS)
      const winner = await race(stores, 'job')
      assert.ok(winner.fencingToken > old.fencingToken)
      await assertLives(given.store, winner)
    },
  },
  {
    name: 'INV-06: many sessions that inherit from one dead session at once get exactly one grant',
    async run(given) {
      const stores = [given.store, await given.openReplica()]
      const old = await acquireAfresh(given.store, 'job')
      await given.killSession(old.sessionId)
      const winner = await race(stores, 'job')
      assert.ok(winner.fencingToken > old.fencingToken)
      await assertLives(given.store, winner)
    },
  },
  {
    name: 'decision 3: one session that asks for one free key many times at once gets one grant',
    async run(given) {
      const { store } = given
      const replica = await given.openReplica()
      const sessionId = await openSession(store)
      const grants = await Promise.all(
        Array.from({ length: CALLERS }, (_, index) =>
          acquire(index % 2 === 0 ? store : replica, 'job', sessionId),
        ),
      )
      assert.equal(new Set(grants.map((grant) => grant.fencingToken)).size, 1)
    },
  },
  {
    name: 'many keys asked for at once are all granted, and released at once',
    async run({ store }) {
      const sessionId = await openSession(store)
      const keys = Array.from({ length: 4 * CALLERS }, (_, index) => `job/${index}`)
      const grants = await Promise.all(keys.map((key) => acquire(store, key, sessionId)))
      assert.deepEqual(
        grants.map((grant) => grant.key),
        keys,
      )
      // Not that their tokens differ: a token orders the grants of one key, and no others.
      assert.deepEqual(await store.locksOf(sessionId), new Set(keys))
      const released = await Promise.all(
        grants.map((grant) => store.deleteIfOwner(grant.key, grant.fencingToken)),
      )
      assert.ok(released.every((done) => done))
    },
  },
  {
    name: 'one grant released many times at once is released once',
    async run(given) {
      const { store } = given
      const replica = await given.openReplica()
      const grant = await acquireAfresh(store, 'job')
      const released = await Promise.all(
        Array.from({ length: CALLERS }, (_, index) =>
          (index % 2 === 0 ? store : replica).deleteIfOwner('job', grant.fencingToken),
        ),
      )
      assert.equal(released.filter((done) => done).length, 1)
      await assertGone(store, grant)
    },
  },
  {
    name: 'one grant revoked many times at once is revoked once',
    async run({ store }) {
      await acquireAfresh(store, 'job')
      const outcomes = await Promise.all(
        Array.from({ length: 8 }, () => store.revoke('job', 'operator', 'for the test')),
      )
      assert.equal(outcomes.filter((outcome) => outcome.revoked).length, 1)
    },
  },
  {
    name: 'P-20: extensions and a release at the same time leave the key free',
    async run({ store }) {
      for (let round = 0; round < 5; round++) {
        const grant = await acquireAfresh(store, 'job')
        const extend = () => store.extend('job', grant.fencingToken, LONG_MS)
        const [, , released] = await Promise.all([
          extend(),
          extend(),
          store.deleteIfOwner('job', grant.fencingToken),
          extend(),
        ])
        assert.equal(released, true)
        await assertGone(store, grant)
      }
    },
  },
  {
    name: 'a release and a rival’s attempt at the same time leave one grant, or none',
    async run({ store }) {
      const rival = await openSession(store, 'rival')
      for (let round = 0; round < 10; round++) {
        const grant = await acquireAfresh(store, 'job')
        const [released, taken] = await Promise.all([
          store.deleteIfOwner('job', grant.fencingToken),
          store.tryInsert('job', 'rival', rival, LONG_MS),
        ])
        assert.equal(released, true)
        assert.equal((await store.read('job'))?.fencingToken, taken?.fencingToken)
        if (taken === undefined) continue
        assert.ok(taken.fencingToken > grant.fencingToken)
        assert.equal(await store.deleteIfOwner('job', taken.fencingToken), true)
      }
    },
  },
  {
    name: 'one caller’s failure does not fail the calls beside it',
    async run(given) {
      const { store } = given
      const alive = await openSession(store)
      const dead = await openSession(store)
      await given.killSession(dead)
      const asked = await Promise.allSettled(
        Array.from({ length: CALLERS }, (_, index) =>
          store.tryInsert(`job/${index}`, 'worker', index % 4 === 0 ? dead : alive, LONG_MS),
        ),
      )
      for (const [index, answer] of asked.entries()) {
        if (index % 4 === 0) {
          assert.ok(answer.status === 'rejected' && answer.reason instanceof SessionDeadError)
        } else {
          assert.ok(answer.status === 'fulfilled' && answer.value?.key === `job/${index}`)
        }
      }
    },
  },
  {
    name: 'a session that closes while it acquires leaves no grant behind',
    async run({ store }) {
      for (let round = 0; round < 10; round++) {
        const sessionId = await openSession(store)
        const attempt = store.tryInsert('job', 'worker', sessionId, LONG_MS).catch((error) => {
          assert.ok(error instanceof SessionDeadError)
        })
        await Promise.all([attempt, store.closeSession(sessionId)])
        assert.equal(await store.read('job'), undefined)
        assert.deepEqual(await store.locksOf(sessionId), new Set())
      }
    },
  },
  {
    name: 'FR-02, INV-06: workers that contend never overlap, and each holds a higher token',
    async run(given) {
      const { store } = given
      const stores = [store, await given.openReplica()]
      const tokens: bigint[] = []
      let inside = 0
      const work = async (worker: TestedStore): Promise<void> => {
        const sessionId = await openSession(worker)
        for (let turn = 0; turn < 20; turn++) {
          const grant = await worker.tryInsert('job', 'worker', sessionId, LONG_MS)
          if (grant === undefined) continue
          inside += 1
          assert.equal(inside, 1, 'two holders at once')
          tokens.push(grant.fencingToken)
          for (let reads = 0; reads < 5; reads++) await worker.read('job')
          inside -= 1
          assert.equal(await worker.deleteIfOwner('job', grant.fencingToken), true)
        }
      }
      await Promise.all([...stores, ...stores, ...stores, ...stores].map(work))
      assert.ok(tokens.length > 0)
      for (const [index, token] of tokens.entries()) {
        assert.ok(index === 0 || token > (tokens[index - 1] ?? 0n), tokens.join(' '))
      }
    },
  },
]

/** Many sessions ask at once, spread over the stores. */
async function race(stores: readonly TestedStore[], key: string): Promise<LockHandle> {
  const askers = await Promise.all(
    Array.from({ length: CALLERS }, async (_, index) => {
      const store = stores[index % stores.length] as TestedStore
      return { store, sessionId: await openSession(store) }
    }),
  )
  const answers = await Promise.all(
    askers.map(({ store, sessionId }) => store.tryInsert(key, 'worker', sessionId, LONG_MS)),
  )
  const [winner, ...others] = answers.filter((answer) => answer !== undefined)
  assert.ok(winner, 'somebody must get a free key')
  assert.equal(others.length, 0, `${others.length + 1} grants at once`)
  return winner
}
