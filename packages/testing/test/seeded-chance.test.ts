import { seededIds, seededRandom } from '@dlock/testing'
import fc from 'fast-check'
import { expect, test } from 'vitest'

const seeds = fc.nat(2 ** 32 - 1)

test('the same seed gives the same numbers, another seed others', () => {
  const draw = (seed: number) => {
    const random = seededRandom(seed)
    return Array.from({ length: 20 }, () => random.next())
  }
  fc.assert(
    fc.property(seeds, seeds, (one, two) => {
      expect(draw(one)).toEqual(draw(one))
      if (one !== two) expect(draw(one)).not.toEqual(draw(two))
    }),
  )
})

test('the numbers are spread evenly over [0, 1)', () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const random = seededRandom(seed)
      const tenths = Array.from({ length: 10 }, () => 0)
      for (let draw = 0; draw < 10_000; draw++) {
        const tenth = Math.floor(random.next() * 10)
        tenths[tenth] = (tenths[tenth] ?? 0) + 1
      }
      expect(tenths).toHaveLength(10)
      // A thousand each; six standard deviations are 180.
      for (const count of tenths) expect(Math.abs(count - 1_000)).toBeLessThan(200)
    }),
    { numRuns: 50 },
  )
})

test('the names look like UUIDs, repeat with the seed, and differ from one another', () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const draw = () => {
        const ids = seededIds(seed)
        return Array.from({ length: 100 }, () => ids.uuid())
      }
      const names = draw()
      expect(draw()).toEqual(names)
      expect(new Set(names).size).toBe(100)
      for (const name of names) {
        expect(name).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/)
      }
    }),
  )
})

test.each([-1, 1.5, 2 ** 32, Number.NaN])('%d is no seed', (seed) => {
  expect(() => seededRandom(seed)).toThrow(RangeError)
  expect(() => seededIds(seed)).toThrow(RangeError)
})
