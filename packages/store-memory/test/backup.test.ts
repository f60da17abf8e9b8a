import { MemoryStore } from '@dlock/store-memory'
import { ManualClock, seededIds } from '@dlock/testing'
import { expect, test } from 'vitest'

test('a store begins with what its backup knew, tokens included, and goes on without it', async () => {
  const clock = new ManualClock()
  const old = new MemoryStore({ clock, ids: seededIds(1) })
  const session = await old.openSession('ann', 60_000)
  const held = await old.tryInsert('a', 'ann', session, 10_000)
  await old.tryInsert('b', 'ann', session, 10_000)
  await old.revoke('b', 'operator', 'a reason')
  const restored = new MemoryStore({ clock, backup: old })

  await old.deleteIfOwner('a', held?.fencingToken ?? 0n)
  await old.heartbeat(session, 600_000)
  expect((await restored.read('a'))?.fencingToken).toBe(held?.fencingToken)
  expect(await restored.capabilities().tokens?.highestToken()).toBe(3n)
  const revocations = await restored
    .capabilities()
    .listing?.listRevocations({ cursor: undefined, limit: 10 })
  expect(revocations?.items.map(({ key }) => key)).toEqual(['b'])

  expect((await restored.tryInsert('c', 'ann', session, 10_000))?.fencingToken).toBe(4n)
  expect(await old.read('c')).toBeUndefined()
  await clock.advance(60_000)
  expect(await restored.heartbeat(session, 60_000)).toBe(false)
  expect(await old.heartbeat(session, 60_000)).toBe(true)
})

test('whoever listened to the backup hears nothing of the store that began with it', async () => {
  const clock = new ManualClock()
  const old = new MemoryStore({ clock })
  const heard: string[] = []
  await old.capabilities().waiting?.subscribe(
    (key) => heard.push(key),
    () => {},
  )
  const session = await old.openSession('ann', 60_000)
  const held = await old.tryInsert('a', 'ann', session, 10_000)
  await old.capabilities().waiting?.want('a')
  const restored = new MemoryStore({ clock, backup: old })
  await restored.deleteIfOwner('a', held?.fencingToken ?? 0n)
  expect(heard).toEqual([])
})
