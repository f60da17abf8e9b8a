import assert from 'node:assert/strict'
import { type LockHandle, MAX_FENCING_TOKEN } from '@dlock/lock-api'
import {
  acquire,
  acquireAfresh,
  assertGone,
  assertLives,
  FAR_FUTURE,
  LONG_MS,
  letEnd,
  need,
  openSession,
  SHORT_MS,
} from '../steps.ts'
import type { StoreCase, StoreNamespace } from '../store-case.ts'

/** Every way in which the only grant of a namespace ends. Each makes one of "job", and ends it. */
const WAYS_TO_END: Readonly<Record<string, (given: StoreNamespace) => Promise<LockHandle>>> = {
  release: async ({ store }) => {
    const grant = await acquireAfresh(store, 'job')
    assert.equal(await store.deleteIfOwner('job', grant.fencingToken), true)
    return grant
  },
  expiry: lapse,
  'expiry and reaping': async (given) => {
    const grant = await lapse(given)
    await given.store.reapExpired(FAR_FUTURE)
    return grant
  },
  revocation: async ({ store }) => {
    const grant = await acquireAfresh(store, 'job')
    assert.equal((await store.revoke('job', 'operator', 'for the test')).revoked, true)
    return grant
  },
  'the end of its session': async ({ store }) => {
    const grant = await acquireAfresh(store, 'job')
    assert.equal(await store.closeSession(grant.sessionId), 1)
    return grant
  },
  'the death of its session': kill,
  'the death of its session, and reaping': async (given) => {
    const grant = await kill(given)
    await given.store.reapExpired(FAR_FUTURE)
    return grant
  },
}

/** FR-02, INV-04: for a key, every token is above every earlier one, for ever. */
export const tokenCases: readonly StoreCase[] = [
  ...Object.entries(WAYS_TO_END).map(
    ([how, grantAndEnd]): StoreCase => ({
      name: `P-24: after ${how} the next token is above, though the store was empty in between`,
      async run(given) {
        let highest = 0n
        for (let round = 0; round < 2; round++) {
          const ended = await grantAndEnd(given)
          assert.ok(ended.fencingToken > highest, `${ended.fencingToken} is not above ${highest}`)
          highest = ended.fencingToken
        }
        const next = await acquireAfresh(given.store, 'job')
        assert.ok(next.fencingToken > highest, `${next.fencingToken} is not above ${highest}`)
      },
    }),
  ),
  {
    name: 'P-25: tokens rise as numbers do, past 9, 99 and their like',
    async run({ store }) {
      const sessionId = await openSession(store)
      let highest = 0n
      for (let round = 0; round < 120; round++) {
        const { fencingToken } = await acquire(store, 'job', sessionId)
        assert.ok(fencingToken > highest, `${fencingToken} is not above ${highest}`)
        highest = fencingToken
        assert.equal(await store.deleteIfOwner('job', fencingToken), true)
      }
    },
  },
  {
    name: 'P-25: a token above 2^53 is exact, and its neighbours are other tokens',
    needs: ['tokens'],
    async run({ store }) {
      const above = 2n ** 53n + 10n
      await need(store, 'tokens').advanceTokens(above)
      const sessionId = await openSession(store)
      let highest = above
      for (let round = 0; round < 3; round++) {
        const { fencingToken } = await acquire(store, 'job', sessionId)
        assert.ok(fencingToken > highest, `${fencingToken} is not above ${highest}`)
        highest = fencingToken
        for (const neighbour of [fencingToken - 1n, fencingToken + 1n]) {
          assert.equal(await store.extend('job', neighbour, LONG_MS), undefined)
          assert.equal(await store.deleteIfOwner('job', neighbour), false)
        }
        assert.equal((await store.read('job'))?.fencingToken, fencingToken)
        assert.equal(await store.deleteIfOwner('job', fencingToken), true)
      }
    },
  },
  {
    name: 'INV-04: the highest token is at least every token issued, revoked ones included',
    needs: ['tokens'],
    async run({ store }) {
      const tokens = need(store, 'tokens')
      const grant = await acquireAfresh(store, 'job')
      assert.ok((await tokens.highestToken()) >= grant.fencingToken)
      const { newTokenFloor } = await store.revoke('job', 'operator', 'for the test')
      const highest = await tokens.highestToken()
      assert.ok(newTokenFloor !== undefined && highest >= newTokenFloor)
      assert.ok((await acquireAfresh(store, 'job')).fencingToken > highest)
    },
  },
  {
    name: 'INV-04: advancing the tokens puts every later one above, on every replica',
    needs: ['tokens'],
    async run(given) {
      const { store } = given
      const replica = await given.openReplica()
      const grant = await acquireAfresh(store, 'job')
      const above = grant.fencingToken + 1_000_000n
      assert.ok((await need(store, 'tokens').advanceTokens(above)) >= above)
      await assertLives(store, grant)
      assert.ok((await acquireAfresh(replica, 'job2')).fencingToken > above)
      assert.ok((await acquireAfresh(store, 'job3')).fencingToken > above)
    },
  },
  {
    name: 'INV-04: the tokens are never moved back',
    needs: ['tokens'],
    async run({ store }) {
      const tokens = need(store, 'tokens')
      const far = await tokens.advanceTokens(1_000_000n)
      assert.ok((await tokens.advanceTokens(1n)) >= far)
      assert.ok((await tokens.highestToken()) >= far)
      assert.ok((await acquireAfresh(store, 'job')).fencingToken > far)
    },
  },
  {
    name: 'P-28: the tokens are not advanced to where none is left to issue',
    needs: ['tokens'],
    async run({ store }) {
      const tokens = need(store, 'tokens')
      await assert.rejects(tokens.advanceTokens(MAX_FENCING_TOKEN), RangeError)
      await assert.rejects(tokens.advanceTokens(MAX_FENCING_TOKEN + 1n), RangeError)
      await assert.rejects(tokens.advanceTokens(-1n), RangeError)
      await acquireAfresh(store, 'job')
    },
  },
]

async function lapse(given: StoreNamespace): Promise<LockHandle> {
  const grant = await acquire(given.store, 'job', await openSession(given.store), SHORT_MS)
  await letEnd(given, SHORT_MS)
  await assertGone(given.store, grant)
  return grant
}

async function kill(given: StoreNamespace): Promise<LockHandle> {
  const { store } = given
  const grant = await acquireAfresh(store, 'job')
  await given.killSession(grant.sessionId)
  return grant
}
