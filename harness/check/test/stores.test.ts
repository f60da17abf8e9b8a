import { MemoryStore } from '@dlock/store-memory'
import type { Clock } from '@dlock/system'
import { describe, expect, test } from 'vitest'
import { check, describeVerdict, type Verdict } from '../src/index.ts'
import { brokenStores } from './broken-stores.ts'
import { atBareStore, atTwoEngines } from './services.ts'

const SEEDS = Array.from({ length: 12 }, (_, index) => index + 1)

class Sound extends MemoryStore {
  constructor(clock: Clock) {
    super({ clock })
  }
}

test.each(SEEDS)(
  'the memory store alone, seed %i: linearizable under lost answers',
  async (seed) => {
    expectLinearizable(check(await atBareStore(Sound, seed)))
  },
)

test.each(SEEDS)('two engines over one store, seed %i: linearizable too', async (seed) => {
  expectLinearizable(check(await atTwoEngines((clock) => new MemoryStore({ clock }), seed)))
})

describe('NFR-07: a store that is broken in one way has a history that no lock can have', () => {
  test.each(brokenStores.map((store) => ({ name: store.name, store })))(
    '$name',
    async ({ store }) => {
      const kinds: Verdict['kind'][] = []
      for (const seed of SEEDS) kinds.push(check(await atBareStore(store, seed)).kind)
      expect(kinds).not.toContain('malformed')
      expect(kinds).toContain('impossible')
    },
  )
})

function expectLinearizable(verdict: Verdict): void {
  expect(describeVerdict(verdict)).toMatch(/^linearizable: \d+ calls/)
}
