import assert from 'node:assert/strict'
import type { LockHandle } from '@dlock/lock-api'
import { acquireAfresh, assertGone, assertLives, openSession } from '../steps.ts'
import type { StoreCase } from '../store-case.ts'

/** Each is another lock than every other one, however much two of them look alike. */
export const CONFUSABLE_KEYS: readonly string[] = [
  'job',
  'job2',
  'job/1',
  'job/',
  'jo',
  'job%2F1',
  'job%',
  'job_',
  'job*',
  'Job',
  'job ',
  ' job',
  'job\\',
  "job'",
  'job"',
  'job$1',
  'job;--',
  'job{1}',
  '작업',
  'café', // with one code point for é
  'cafe\u0301', // and with two
  'ﬁle',
  'file',
  '\u{1f512}',
  '\u{1f512}\u{1f511}',
  '\uffe6',
  'k'.repeat(512),
  `${'k'.repeat(511)}l`,
  `${'€'.repeat(170)}kk`,
  'constructor',
  '__proto__',
]

/** P-02: a key is its exact text, and nothing else. */
export const keyCases: readonly StoreCase[] = [
  {
    name: 'P-02: keys that are prefixes or look-alikes of one another are independent locks',
    async run({ store }) {
      const grants: LockHandle[] = []
      for (const key of CONFUSABLE_KEYS) {
        const grant = await acquireAfresh(store, key)
        assert.equal(grant.key, key)
        grants.push(grant)
      }
      for (const grant of grants) {
        assert.deepEqual(await store.locksOf(grant.sessionId), new Set([grant.key]))
        assert.equal((await store.read(grant.key))?.key, grant.key)
      }
      const released = grants.filter((_, index) => index % 3 === 0)
      const revoked = grants.filter((_, index) => index % 3 === 1)
      const kept = grants.filter((_, index) => index % 3 === 2)
      for (const grant of released) {
        assert.equal(await store.deleteIfOwner(grant.key, grant.fencingToken), true)
      }
      for (const grant of revoked) await store.revoke(grant.key, 'operator', 'for the test')
      for (const grant of [...released, ...revoked]) await assertGone(store, grant)
      for (const grant of kept) await assertLives(store, grant)
    },
  },
  {
    name: 'P-02: a session’s end releases its own keys, not those that begin alike',
    async run({ store }) {
      const grant = await acquireAfresh(store, 'job')
      const alike = await acquireAfresh(store, 'job/1')
      await store.closeSession(grant.sessionId)
      await assertLives(store, alike)
      assert.ok(await store.tryInsert('job', 'worker', await openSession(store), 60_000))
    },
  },
]
