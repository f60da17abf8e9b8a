import { MemoryStore } from '@dlock/store-memory'
import { ManualClock } from '@dlock/testing'
import { expect, test } from 'vitest'

test.each([3_600_000, -3_600_000])(
  'P-13: a wall clock that jumps by %d ms changes no lease and no session',
  async (jumpMs) => {
    const clock = new ManualClock()
    const store = new MemoryStore({ clock })
    const holder = await store.openSession('holder', 2_000)
    const other = await store.openSession('other', 10_000)
    const grant = await store.tryInsert('job', 'holder', holder, 1_000)
    clock.jumpWall(jumpMs)
    await store.reapExpired(clock.now())
    await clock.advance(999)
    expect(await store.tryInsert('job', 'other', other, 1_000)).toBeUndefined()
    expect(grant && (await store.extend('job', grant.fencingToken, 1_000))).toBeDefined()
    await clock.advance(1_000)
    expect(await store.heartbeat(holder, 2_000)).toBe(true)
    expect(await store.tryInsert('job', 'other', other, 1_000)).toBeDefined()
  },
)

test('the dates that are shown are the wall clock’s, as it stands when they are shown', async () => {
  const clock = new ManualClock({ wallTime: new Date('2026-01-01T00:00:00Z') })
  const store = new MemoryStore({ clock })
  const sessionId = await store.openSession('worker', 60_000)
  const grant = await store.tryInsert('job', 'worker', sessionId, 15_000)
  expect(grant?.serverExpiry).toEqual(new Date('2026-01-01T00:00:15Z'))
  clock.jumpWall(3_600_000)
  const info = await store.read('job')
  expect(info?.acquiredAt).toEqual(new Date('2026-01-01T00:00:00Z'))
  expect(info?.expiresAt).toEqual(new Date('2026-01-01T01:00:15Z'))
})

test('a listener that hears of a freed key can have it at once', async () => {
  const store = new MemoryStore({ clock: new ManualClock() })
  const [holder, waiter] = [
    await store.openSession('holder', 60_000),
    await store.openSession('waiter', 60_000),
  ]
  const grant = await store.tryInsert('job', 'holder', holder, 15_000)
  const { waiting } = store.capabilities()
  const taken = new Promise((resolve) => {
    void waiting?.subscribe(
      (key) => resolve(store.tryInsert(key, 'waiter', waiter, 15_000)),
      () => {},
    )
  })
  await waiting?.want('job')
  expect(grant && (await store.deleteIfOwner('job', grant.fencingToken))).toBe(true)
  expect(await taken).toBeDefined()
})
