import assert from 'node:assert/strict'
import { LockOutcome } from '@dlock/lock-api'
import {
  acquire,
  acquireAfresh,
  assertGone,
  assertLives,
  LONG_MS,
  letEnd,
  need,
  openSession,
  SHORT_MS,
} from '../steps.ts'
import type { StoreCase } from '../store-case.ts'

const OPERATOR = 'Zoë of the night shift'
const REASON = 'stuck since 03:00; "worker-7" does not answer'

/** FR-08: break-glass. */
export const revocationCases: readonly StoreCase[] = [
  {
    name: 'FR-08: revoking says whose grant it was, and the holder is lost at once',
    async run({ store }) {
      const sessionId = await openSession(store, 'worker-7')
      const grant = await store.tryInsert('job', 'worker-7', sessionId, LONG_MS)
      assert.ok(grant)
      const outcome = await store.revoke('job', OPERATOR, REASON)
      assert.ok(outcome instanceof LockOutcome)
      assert.equal(outcome.key, 'job')
      assert.equal(outcome.revoked, true)
      assert.equal(outcome.previousOwnerId, 'worker-7')
      assert.equal(outcome.previousToken, grant.fencingToken)
      await assertGone(store, grant)
      assert.equal(await store.deleteIfOwner('job', grant.fencingToken), false)
    },
  },
  {
    name: 'INV-04: every token after a revocation is above its floor, the old holder’s too',
    async run({ store }) {
      const grant = await acquireAfresh(store, 'job')
      const { newTokenFloor } = await store.revoke('job', OPERATOR, REASON)
      assert.ok(newTokenFloor !== undefined && newTokenFloor > grant.fencingToken)
      const again = await acquire(store, 'job', grant.sessionId)
      assert.ok(again.fencingToken > newTokenFloor)
      await store.deleteIfOwner('job', again.fencingToken)
      assert.ok((await acquireAfresh(store, 'job')).fencingToken > newTokenFloor)
    },
  },
  {
    name: 'FR-08: revoking what nobody holds says so and changes nothing',
    async run({ store }) {
      const outcome = await store.revoke('job', OPERATOR, REASON)
      assert.ok(outcome.equals(LockOutcome.notHeld('job')))
      const released = await acquireAfresh(store, 'job')
      await store.deleteIfOwner('job', released.fencingToken)
      assert.equal((await store.revoke('job', OPERATOR, REASON)).revoked, false)
    },
  },
  {
    name: 'FR-08: an expired grant, or a dead session’s, cannot be revoked any more',
    async run(given) {
      const { store } = given
      await acquire(store, 'expired', await openSession(store), SHORT_MS)
      const orphan = await acquireAfresh(store, 'orphan')
      await given.killSession(orphan.sessionId)
      await letEnd(given, SHORT_MS)
      assert.equal((await store.revoke('expired', OPERATOR, REASON)).revoked, false)
      assert.equal((await store.revoke('orphan', OPERATOR, REASON)).revoked, false)
    },
  },
  {
    name: 'FR-08: a revocation touches neither the session nor any other lock',
    async run({ store }) {
      const sessionId = await openSession(store)
      await acquire(store, 'job', sessionId)
      const own = await acquire(store, 'job/1', sessionId)
      const other = await acquireAfresh(store, 'job2')
      await store.revoke('job', OPERATOR, REASON)
      assert.equal(await store.heartbeat(sessionId, LONG_MS), true)
      assert.deepEqual(await store.locksOf(sessionId), new Set(['job/1']))
      await assertLives(store, own)
      await assertLives(store, other)
    },
  },
  {
    name: 'FR-08: a revocation that expects another grant changes nothing and names the current one',
    needs: ['audit'],
    async run({ store }) {
      const audit = need(store, 'audit')
      const old = await acquireAfresh(store, 'job')
      await store.deleteIfOwner('job', old.fencingToken)
      const current = await acquireAfresh(store, 'job')
      const answer = await audit.revokeExpecting('job', OPERATOR, REASON, old.fencingToken)
      assert.deepEqual(answer, { kind: 'stale', currentToken: current.fencingToken })
      await assertLives(store, current)
      const never = await audit.revokeExpecting('job2', OPERATOR, REASON, old.fencingToken)
      assert.deepEqual(never, { kind: 'not-held' })
    },
  },
  {
    name: 'FR-08: a revocation that expects the current grant, or any, revokes it',
    needs: ['audit'],
    async run({ store }) {
      const audit = need(store, 'audit')
      const ids: string[] = []
      for (const expect of [true, false]) {
        const grant = await acquireAfresh(store, 'job')
        const expected = expect ? grant.fencingToken : undefined
        const answer = await audit.revokeExpecting('job', OPERATOR, REASON, expected)
        assert.ok(answer.kind === 'revoked')
        assert.equal(answer.outcome.previousToken, grant.fencingToken)
        ids.push(answer.revocationId)
        await assertGone(store, grant)
      }
      assert.notEqual(ids[0], ids[1])
    },
  },
  {
    name: 'FR-08: each revocation leaves one audit record, and a refused one leaves none',
    needs: ['audit', 'listing'],
    async run({ store }) {
      const audit = need(store, 'audit')
      await store.revoke('nobody-has-it', OPERATOR, REASON)
      await audit.revokeExpecting('nobody-has-it', OPERATOR, REASON, undefined)
      const first = await acquireAfresh(store, 'job')
      await audit.revokeExpecting('job', OPERATOR, REASON, first.fencingToken + 1n)
      const outcome = await store.revoke('job', OPERATOR, REASON)
      const second = await acquireAfresh(store, 'job')
      const answer = await audit.revokeExpecting('job', 'somebody else', 'again', undefined)
      assert.ok(answer.kind === 'revoked')

      const page = await need(store, 'listing').listRevocations({ cursor: undefined, limit: 10 })
      assert.equal(page.items.length, 2)
      const ofFirst = page.items.find((item) => item.previousToken === first.fencingToken)
      const ofSecond = page.items.find((item) => item.previousToken === second.fencingToken)
      assert.equal(ofFirst?.key, 'job')
      assert.equal(ofFirst.previousOwnerId, first.ownerId)
      assert.equal(ofFirst.newTokenFloor, outcome.newTokenFloor)
      assert.equal(ofFirst.operator, OPERATOR)
      assert.equal(ofFirst.reason, REASON)
      assert.ok(ofFirst.revokedAt instanceof Date)
      assert.equal(ofSecond?.revocationId, answer.revocationId)
      assert.equal(ofSecond.newTokenFloor, answer.outcome.newTokenFloor)
      assert.equal(ofSecond.operator, 'somebody else')
    },
  },
]
