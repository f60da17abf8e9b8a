import { systemIds, systemRandom } from '@dlock/system'
import { expect, test } from 'vitest'

test('chance is from 0 to below 1', () => {
  const draws = Array.from({ length: 1_000 }, () => systemRandom.next())
  expect(Math.min(...draws)).toBeGreaterThanOrEqual(0)
  expect(Math.max(...draws)).toBeLessThan(1)
  expect(new Set(draws).size).toBeGreaterThan(990)
})

test('names are version 4 UUIDs that do not repeat', () => {
  const names = Array.from({ length: 1_000 }, () => systemIds.uuid())
  expect(new Set(names).size).toBe(1_000)
  for (const name of names) {
    expect(name).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
  }
})
