import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import type { Page, PageQuery } from '@dlock/lock-api'
import { acquire, acquireAfresh, LONG_MS, letEnd, need, openSession, SHORT_MS } from '../steps.ts'
import type { StoreCase } from '../store-case.ts'
import { CONFUSABLE_KEYS } from './keys.ts'

/** Paged views for operators. */
export const listingCases: readonly StoreCase[] = [
  {
    name: 'P-02: a listing by prefix is exact, and in the order of the keys’ UTF-8 bytes',
    needs: ['listing'],
    async run({ store }) {
      const sessionId = await openSession(store)
      for (const key of CONFUSABLE_KEYS) await acquire(store, key, sessionId)
      const listing = need(store, 'listing')
      for (const prefix of ['', 'j', 'job', 'job/', 'job%', 'job_', 'job*', 'job\\', 'J', 'cafe']) {
        const page = await listing.listLocks({ prefix, cursor: undefined, limit: 1_000 })
        assert.deepEqual(
          page.items.map((info) => info.key),
          CONFUSABLE_KEYS.filter((key) => key.startsWith(prefix)).toSorted(compareUtf8),
          `prefix ${JSON.stringify(prefix)}`,
        )
        assert.equal(page.nextCursor, undefined)
      }
    },
  },
  {
    name: 'the pages of locks hold each live one once, in order, and the last says that it is',
    needs: ['listing'],
    async run({ store }) {
      const sessionId = await openSession(store)
      const keys = ['a', 'b', 'b%', 'b/1', 'c', 'é']
      for (const key of keys) await acquire(store, key, sessionId)
      const listing = need(store, 'listing')
      for (const limit of [1, 2, 3, 6, 1_000]) {
        const pages = await allPages((page) => listing.listLocks({ prefix: '', ...page }), limit)
        assert.equal(pages.length, Math.ceil(keys.length / limit))
        assert.deepEqual(
          pages.flatMap((page) => page.items.map((info) => info.key)),
          keys,
        )
      }
    },
  },
  {
    name: 'a page begins where the one before ended, though its last lock is gone by then',
    needs: ['listing'],
    async run({ store }) {
      const listing = need(store, 'listing')
      const grants = []
      for (const key of ['a', 'b', 'c', 'd']) grants.push(await acquireAfresh(store, key))
      const first = await listing.listLocks({ prefix: '', cursor: undefined, limit: 2 })
      await store.deleteIfOwner('b', grants[1]?.fencingToken ?? 1n)
      const second = await listing.listLocks({ prefix: '', cursor: first.nextCursor, limit: 2 })
      assert.deepEqual(
        second.items.map((info) => info.key),
        ['c', 'd'],
      )
    },
  },
  {
    name: 'listings show what lives: no expired lease, no dead session, nothing of one',
    needs: ['listing'],
    async run(given) {
      const { store } = given
      await acquire(store, 'expired', await openSession(store, 'lives'), SHORT_MS)
      const orphan = await acquireAfresh(store, 'orphan')
      await given.killSession(orphan.sessionId)
      await store.openSession('expired', SHORT_MS)
      await letEnd(given, SHORT_MS)
      const live = await acquire(store, 'live', await openSession(store, 'lives'))
      const listing = need(store, 'listing')
      const locks = await listing.listLocks({ prefix: '', cursor: undefined, limit: 10 })
      assert.deepEqual(
        locks.items.map((info) => [info.key, info.ownerId, info.fencingToken]),
        [['live', live.ownerId, live.fencingToken]],
      )
      const sessions = await listing.listSessions({ cursor: undefined, limit: 10 })
      assert.deepEqual(
        sessions.items.map((info) => info.ownerId),
        ['lives', 'lives'],
      )
    },
  },
  {
    name: 'the pages of sessions hold each live one once, with its locks counted',
    needs: ['listing'],
    async run({ store }) {
      const held = new Map<string, number>()
      for (let index = 0; index < 5; index++) {
        const sessionId = await openSession(store, `worker-${index}`)
        for (let key = 0; key < index; key++) await acquire(store, `${index}/${key}`, sessionId)
        held.set(`worker-${index}`, index)
      }
      const listing = need(store, 'listing')
      for (const limit of [1, 2, 5]) {
        const pages = await allPages((page) => listing.listSessions(page), limit)
        const sessions = pages.flatMap((page) => page.items)
        assert.equal(sessions.length, 5)
        assert.deepEqual(
          new Map(sessions.map((info) => [info.ownerId, info.heldLockCount] as const)),
          held,
        )
        assert.equal(new Set(sessions.map((info) => info.sessionRef)).size, 5)
        assert.ok(sessions.every((info) => info.expiresAt > info.createdAt))
      }
    },
  },
  {
    name: 'a listing of sessions gives away no session id',
    needs: ['listing'],
    async run({ store }) {
      const sessionId = await openSession(store)
      const page = await need(store, 'listing').listSessions({ cursor: undefined, limit: 10 })
      const [session] = page.items
      assert.ok(session)
      assert.ok(!JSON.stringify(session).includes(sessionId))
      assert.equal(await store.heartbeat(session.sessionRef, LONG_MS), false)
    },
  },
  {
    name: 'the pages of revocations hold each one once',
    needs: ['listing'],
    async run({ store }) {
      // More than nine: a store that numbers them must not order the numbers as text (P-25).
      const tokens = new Set<bigint>()
      for (let index = 0; index < 11; index++) {
        tokens.add((await acquireAfresh(store, 'job')).fencingToken)
        await store.revoke('job', 'operator', `reason ${index}`)
      }
      const listing = need(store, 'listing')
      for (const limit of [1, 2, 11]) {
        const pages = await allPages((page) => listing.listRevocations(page), limit)
        const revocations = pages.flatMap((page) => page.items)
        assert.equal(revocations.length, 11)
        assert.deepEqual(new Set(revocations.map((item) => item.previousToken)), tokens)
      }
    },
  },
  {
    name: 'a page of no items, or of more than 1 000, is rejected by type',
    needs: ['listing'],
    async run({ store }) {
      const listing = need(store, 'listing')
      for (const limit of [0, -1, 1.5, 1_001, Number.NaN]) {
        const page = { cursor: undefined, limit }
        await assert.rejects(listing.listLocks({ prefix: '', ...page }), RangeError)
        await assert.rejects(listing.listSessions(page), RangeError)
        await assert.rejects(listing.listRevocations(page), RangeError)
      }
    },
  },
]

async function allPages<Item>(
  list: (query: PageQuery) => Promise<Page<Item>>,
  limit: number,
): Promise<Page<Item>[]> {
  const pages = [await list({ cursor: undefined, limit })]
  for (let cursor = pages[0]?.nextCursor; cursor !== undefined; ) {
    const page = await list({ cursor, limit })
    pages.push(page)
    cursor = page.nextCursor
    assert.ok(pages.length <= 100, 'the pages never end')
  }
  return pages
}

function compareUtf8(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
