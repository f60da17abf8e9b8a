import { MAX_FENCING_TOKEN } from '@dlock/lock-api'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { admits, advance, checkFloor, continues, permits } from '../src/index.ts'

const token = fc.bigInt({ min: 1n, max: MAX_FENCING_TOKEN })
const fence = fc.bigInt({ min: 0n, max: MAX_FENCING_TOKEN })

test.each([
  // fence, token, admits, continues, permits
  [0n, 1n, true, false, true],
  [6n, 7n, true, false, true],
  [7n, 7n, false, true, true],
  [8n, 7n, false, false, false],
  [9n, 10n, true, false, true], // P-25: as text, "9" > "10"
  [2n ** 53n, 2n ** 53n + 1n, true, false, true], // P-25: equal as JavaScript numbers
] as const)('fence %s, token %s', (stored, presented, admitted, continued, permitted) => {
  expect(admits(stored, presented)).toBe(admitted)
  expect(continues(stored, presented)).toBe(continued)
  expect(permits(stored, presented)).toBe(permitted)
})

test('INV-05: a token below the fence passes by no rule', () => {
  fc.assert(
    fc.property(fence, token, (stored, presented) => {
      const passes = [admits, continues, permits].some((rule) => rule(stored, presented))
      expect(passes).toBe(presented >= stored)
    }),
  )
})

test('INV-05: a pushed floor never lowers the fence, and fences out every token below it', () => {
  fc.assert(
    fc.property(fence, token, token, (stored, floor, presented) => {
      const now = advance(stored, floor)
      expect(now).toBe(stored > floor ? stored : floor)
      if (presented < floor) {
        expect([admits, continues, permits].some((rule) => rule(now, presented))).toBe(false)
      }
      if (presented > now) expect(admits(now, presented)).toBe(true)
    }),
  )
})

test('P-28: a floor that no later token can exceed is refused', () => {
  expect(() => checkFloor(MAX_FENCING_TOKEN)).toThrow(/no token could ever follow/)
  expect(() => checkFloor(0n)).toThrow(RangeError)
  expect(checkFloor(MAX_FENCING_TOKEN - 1n)).toBe(MAX_FENCING_TOKEN - 1n)
})

test('P-28: a floor above the lock service’s highest token is refused when that is known', () => {
  expect(() => checkFloor(101n, 100n)).toThrow(/at most 100.*got 101/)
  expect(checkFloor(100n, 100n)).toBe(100n)
})
