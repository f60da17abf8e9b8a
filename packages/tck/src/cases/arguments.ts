import assert from 'node:assert/strict'
import { MAX_FENCING_TOKEN } from '@dlock/lock-api'
import { acquireAfresh, assertLives, FAR_FUTURE, LONG_MS, need, openSession } from '../steps.ts'
import type { StoreCase, TestedStore } from '../store-case.ts'

const BAD_TTLS = [0, -1, Number.NaN, 1.5, 2 ** 53, Number.POSITIVE_INFINITY, '1000', 1_000n]
const BAD_KEYS = ['', ' ', '\t', 'k'.repeat(513), '€'.repeat(171), 'a\u0000b', 'a\nb', '\ud800', 7]
const BAD_TOKENS = [0n, -1n, MAX_FENCING_TOKEN + 1n, 1, '1', undefined]
const BAD_OWNERS = ['', '  ', 'o'.repeat(65), 'a\u0007b', undefined]
const BAD_SESSION_IDS = ['', ' ', undefined]
const BAD_OPERATORS = ['', ' ', 'o'.repeat(129), undefined]
const BAD_REASONS = ['', ' ', 'r'.repeat(1_025), undefined]

/** A bad argument is a caller's bug: a rejection by type, never an outcome, and nothing happens. */
export const argumentCases: readonly StoreCase[] = [
  {
    name: 'P-14: a TTL that is no whole number of milliseconds in range is rejected by type',
    async run({ store }) {
      const grant = await acquireAfresh(store, 'job')
      for (const bad of BAD_TTLS as number[]) {
        await rejects(bad, () => store.tryInsert('free', 'worker', grant.sessionId, bad))
        await rejects(bad, () => store.extend('job', grant.fencingToken, bad))
        await rejects(bad, () => store.openSession('worker', bad))
        await rejects(bad, () => store.heartbeat(grant.sessionId, bad))
      }
      await assertUntouched(store)
      await assertLives(store, grant)
    },
  },
  {
    name: 'P-02: a key that is empty, too long or not text is rejected by type',
    async run({ store }) {
      const sessionId = await openSession(store)
      for (const bad of BAD_KEYS as string[]) {
        await rejects(bad, () => store.tryInsert(bad, 'worker', sessionId, LONG_MS))
        await rejects(bad, () => store.extend(bad, 1n, LONG_MS))
        await rejects(bad, () => store.deleteIfOwner(bad, 1n))
        await rejects(bad, () => store.read(bad))
        await rejects(bad, () => store.revoke(bad, 'operator', 'for the test'))
      }
      assert.deepEqual(await store.locksOf(sessionId), new Set())
    },
  },
  {
    name: 'P-25: a token that is no bigint from 1 to 2^63 − 1 is rejected by type',
    async run({ store }) {
      const grant = await acquireAfresh(store, 'job')
      for (const bad of BAD_TOKENS as bigint[]) {
        await rejects(bad, () => store.extend('job', bad, LONG_MS))
        await rejects(bad, () => store.deleteIfOwner('job', bad))
      }
      await assertLives(store, grant)
    },
  },
  {
    name: 'a blank or overlong owner, session, operator or reason is rejected by type',
    async run({ store }) {
      const grant = await acquireAfresh(store, 'job')
      for (const bad of BAD_OWNERS as string[]) {
        await rejects(bad, () => store.tryInsert('free', bad, grant.sessionId, LONG_MS))
        await rejects(bad, () => store.openSession(bad, LONG_MS))
      }
      for (const bad of BAD_SESSION_IDS as string[]) {
        await rejects(bad, () => store.tryInsert('free', 'worker', bad, LONG_MS))
        await rejects(bad, () => store.heartbeat(bad, LONG_MS))
        await rejects(bad, () => store.closeSession(bad))
        await rejects(bad, () => store.locksOf(bad))
      }
      for (const bad of BAD_OPERATORS as string[]) {
        await rejects(bad, () => store.revoke('job', bad, 'for the test'))
      }
      for (const bad of BAD_REASONS as string[]) {
        await rejects(bad, () => store.revoke('job', 'operator', bad))
      }
      await assertUntouched(store)
      await assertLives(store, grant)
    },
  },
  {
    name: 'an instant that is no date is rejected by type',
    async run({ store }) {
      const grant = await acquireAfresh(store, 'job')
      for (const bad of [new Date(Number.NaN), FAR_FUTURE.getTime()] as Date[]) {
        await rejects(bad, () => store.reapExpired(bad))
      }
      await assertLives(store, grant)
    },
  },
  {
    name: 'a bad argument of a transfer is rejected by type, and nothing is released',
    needs: ['transfer'],
    async run({ store }) {
      const transfer = need(store, 'transfer')
      const grant = await acquireAfresh(store, 'job')
      const next = { ownerId: 'next', sessionId: await openSession(store), ttlMs: LONG_MS }
      for (const ttlMs of BAD_TTLS as number[]) {
        await rejects(ttlMs, () => transfer.transfer('job', grant.fencingToken, { ...next, ttlMs }))
      }
      for (const ownerId of BAD_OWNERS as string[]) {
        await rejects(ownerId, () =>
          transfer.transfer('job', grant.fencingToken, { ...next, ownerId }),
        )
      }
      for (const bad of BAD_TOKENS as bigint[]) {
        await rejects(bad, () => transfer.transfer('job', bad, next))
      }
      await assertLives(store, grant)
    },
  },
  {
    name: 'a bad argument of an expecting revocation is rejected by type',
    needs: ['audit'],
    async run({ store }) {
      const audit = need(store, 'audit')
      const grant = await acquireAfresh(store, 'job')
      for (const bad of [0n, -1n, 1] as bigint[]) {
        await rejects(bad, () => audit.revokeExpecting('job', 'operator', 'for the test', bad))
      }
      await rejects('', () => audit.revokeExpecting('job', '', 'for the test', grant.fencingToken))
      await assertLives(store, grant)
    },
  },
]

/** By a rejected promise: a method that throws before it returns one is a surprise to its caller. */
async function rejects(bad: unknown, call: () => Promise<unknown>): Promise<void> {
  const answer = call()
  await assert.rejects(
    answer,
    (error) => error instanceof TypeError || error instanceof RangeError,
    `${typeof bad} ${String(bad).slice(0, 20)} must be rejected with a TypeError or a RangeError`,
  )
}

async function assertUntouched(store: TestedStore): Promise<void> {
  assert.equal(await store.read('free'), undefined, 'a bad argument must grant nothing')
}
