import { FREE, type LockState, type Operation, step } from '@dlock/model'
import { seededRandom } from '@dlock/testing'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { search } from '../src/index.ts'
import { hasOrder } from './brute-force.ts'
import { tinyHistory, withOneChange } from './toy-lock.ts'

const seed = fc.integer({ min: 0, max: 2 ** 32 - 1 })

test('whatever a lock that is right answers is linearizable', () => {
  fc.assert(
    fc.property(seed, fc.integer({ min: 1, max: 40 }), (from, calls) => {
      const history = tinyHistory(seededRandom(from), calls)
      const found = search(history)
      expect(found.kind).toBe('linearizable')
      if (found.kind === 'linearizable') expectOrder(history, found.order)
    }),
    { numRuns: 500 },
  )
})

test('on tiny histories, right or wrong, the search says what trying every order says', () => {
  const verdicts = { linearizable: 0, impossible: 0, undecided: 0 }
  fc.assert(
    fc.property(seed, fc.integer({ min: 2, max: 4 }), (from, calls) => {
      const random = seededRandom(from)
      const history = withOneChange(tinyHistory(random, calls), random)
      const found = search(history)
      verdicts[found.kind] += 1
      expect(found.kind).toBe(hasOrder(history) ? 'linearizable' : 'impossible')
    }),
    { numRuns: 1_500 },
  )
  // Both answers are common, or this shows little.
  expect(verdicts.linearizable).toBeGreaterThan(70)
  expect(verdicts.impossible).toBeGreaterThan(70)
})

/** The order that was found is one: allowed step by step, in real time, with every known call. */
function expectOrder(history: readonly Operation[], order: readonly Operation[]): void {
  let state: LockState | undefined = FREE
  for (const [index, op] of order.entries()) {
    const latest = Math.min(...order.slice(index).map(({ endedAt }) => endedAt))
    expect(op.invokedAt).toBeLessThanOrEqual(latest)
    state = step(state ?? FREE, op, latest)
    expect(state).toBeDefined()
  }
  const known = history.filter((op) => op.type !== 'info')
  expect(known.filter((op) => !order.includes(op))).toEqual([])
}
