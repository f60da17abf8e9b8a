import { capabilitiesOf, grantedTtlMs, type LockStore, MAX_TTL_MS } from '@dlock/lock-api'
import fc from 'fast-check'
import { expect, test } from 'vitest'

test('a store that says nothing of capabilities has none', () => {
  expect(capabilitiesOf({} as LockStore)).toEqual({})
})

test('a store that says what it can do is asked, as the object it is', () => {
  const store = {
    health: { checkHealth: async () => {} },
    capabilities() {
      return { health: this.health }
    },
  }
  expect(capabilitiesOf(store as unknown as LockStore).health).toBe(store.health)
})

test('P-14: a lease is never shorter than asked for, and rounded no further than need be', () => {
  const bounds = fc.record({
    granularityMs: fc.integer({ min: 1, max: 10_000 }),
    minTtlMs: fc.integer({ min: 1, max: 10_000 }),
    maxLatenessMs: fc.integer({ min: 0, max: 10_000 }),
  })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: MAX_TTL_MS }), bounds, (ttlMs, bound) => {
      const granted = grantedTtlMs(ttlMs, bound)
      expect(granted).toBeGreaterThanOrEqual(ttlMs)
      expect(granted).toBeGreaterThanOrEqual(bound.minTtlMs)
      expect(granted < ttlMs + bound.granularityMs || granted === bound.minTtlMs).toBe(true)
      expect(Number.isSafeInteger(granted)).toBe(true)
    }),
  )
})

test('a store without bounds grants what is asked for', () => {
  expect(grantedTtlMs(1, undefined)).toBe(1)
  expect(grantedTtlMs(1_500, { granularityMs: 1_000, minTtlMs: 2_000, maxLatenessMs: 0 })).toBe(
    2_000,
  )
})
