import { MemoryStore } from '@dlock/store-memory'
import { checkCapabilities, runStoreCase, type StoreFixture, storeCases } from '@dlock/tck'
import { ManualClock } from '@dlock/testing'
import { beforeAll, describe, expect, test } from 'vitest'
import { argumentsBroken } from './broken/arguments.ts'
import { type BrokenStore, OnClock } from './broken/broken-store.ts'
import { grantsBroken } from './broken/grants.ts'
import { listingBroken } from './broken/listing.ts'
import { sessionsBroken } from './broken/sessions.ts'
import { tokensBroken } from './broken/tokens.ts'
import { transferBroken } from './broken/transfer.ts'
import { waitingBroken } from './broken/waiting.ts'

/**
 * The standing proof that the kit can go red (NFR-07): each store here is broken in one way, and
 * the cases of the rule that it breaks must fail it.
 */
const brokenStores: readonly BrokenStore[] = [
  ...grantsBroken,
  ...sessionsBroken,
  ...tokensBroken,
  ...waitingBroken,
  ...transferBroken,
  ...listingBroken,
  ...argumentsBroken,
]

const failures = new Map<BrokenStore['store'], ReadonlySet<string>>()

beforeAll(async () => {
  for (const { store } of brokenStores) failures.set(store, await failingCases(store))
}, 120_000)

describe('a store that is broken in one way fails the cases of that rule', () => {
  test.each(brokenStores.map((broken) => ({ name: broken.store.name, ...broken })))(
    '$name',
    ({ store, fails }) => {
      expect(fails.length).toBeGreaterThan(0)
      const passed = fails.filter((name) => !failures.get(store)?.has(name))
      expect(passed, 'must fail, but pass').toEqual([])
    },
  )
})

test('every case fails at least one broken store: none is there for show', () => {
  const everFailed = new Set([...failures.values()].flatMap((names) => [...names]))
  expect(storeCases.map(({ name }) => name).filter((name) => !everFailed.has(name))).toEqual([])
})

test('the store that nobody broke passes every case', async () => {
  expect(await failingCases(OnClock)).toEqual(new Set())
})

test('a capability that got lost, or that nobody expects, fails', async () => {
  const declared = Object.keys(new MemoryStore().capabilities()) as StoreFixture['capabilities']
  await checkCapabilities({ ...fixtureOf(OnClock), capabilities: declared })
  for (const expected of [declared.slice(1), [...declared, 'more' as 'health']]) {
    const fixture = { ...fixtureOf(OnClock), capabilities: expected }
    await expect(checkCapabilities(fixture)).rejects.toThrow()
  }
})

test('no two cases share a name', () => {
  const names = storeCases.map(({ name }) => name)
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
})

async function failingCases(store: BrokenStore['store']): Promise<ReadonlySet<string>> {
  const failing = new Set<string>()
  for (const storeCase of storeCases) {
    await runStoreCase(storeCase, fixtureOf(store)).catch(() => failing.add(storeCase.name))
  }
  return failing
}

function fixtureOf(store: BrokenStore['store']): StoreFixture {
  return {
    capabilities: [],
    async open() {
      const clock = new ManualClock()
      const opened = new store(clock)
      return {
        store: opened,
        clock,
        openReplica: async () => opened,
        killSession: async (sessionId) => opened.loseSession(sessionId),
        waitMs: (ms) => clock.advance(ms),
        close: async () => {},
      }
    },
  }
}
