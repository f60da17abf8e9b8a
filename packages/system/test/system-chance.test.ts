import { systemIds, systemRandom } from '@dlock/system'
import { expect, test } from 'vitest'

test('chance is from 0 to below 1', () => {
  const draws = Array.from({ length: 1_000 }, () => systemRandom.next())
  expect(Math.min(...draws)).toBeGreaterThanOrEqual(0)
  expect(Math.max(...draws)).toBeLessThan(1)
  expect(new Set(draws).size).toBeGreaterThan(990)
})

test('names are 128 random bits, spelled like UUIDs, that do not repeat', () => {
  const names = Array.from({ length: 1_000 }, () => systemIds.uuid())
  expect(new Set(names).size).toBe(1_000)
  // A digit that said a version would be the same in all.
  for (const place of [14, 19]) {
    expect(new Set(names.map((name) => name.charAt(place))).size).toBe(16)
  }
  for (const name of names) {
    expect(name).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/)
  }
})
