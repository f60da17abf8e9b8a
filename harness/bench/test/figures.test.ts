import { expect, test } from 'vitest'
import { Exclusion } from '../src/exclusion.ts'
import { goals } from '../src/goals.ts'
import { CONCURRENCIES, type Figures } from '../src/measure.ts'
import { recordLog } from '../src/pgbench.ts'
import { report } from '../src/report.ts'
import { Sample } from '../src/sample.ts'

/** `perSecond` cycles of `ms` each, in one second. */
function sample(perSecond: number, ms: number): Sample {
  const made = new Sample()
  for (let each = 0; each < perSecond; each += 1) made.record(ms * 1_000)
  made.lasted(1)
  return made
}

function figures(changed: Partial<Figures> = {}): Figures {
  const factor = new Map([
    [1, 1],
    [8, 1.4],
    [64, 4],
    [256, 6],
  ])
  return {
    bareLoop: sample(100, 10),
    pgbench: new Map(CONCURRENCIES.map((clients) => [clients, sample(100, 10)])),
    library: new Map(
      CONCURRENCIES.map((clients) => [clients, sample(100 * (factor.get(clients) ?? 0), 9)]),
    ),
    multiplexed: sample(280, 9),
    http: sample(100, 9),
    handOffHere: sample(100, 9.9),
    handOffAcross: sample(100, 4.9),
    crowd: { waiters: 2, handOffs: 22, seconds: 1, shares: [10, 12] },
    ...changed,
  }
}

test('goals are met at their bound', () => {
  expect(goals(figures()).filter((goal) => !goal.met)).toEqual([])
})

test('each goal can be missed', () => {
  const missed = goals(
    figures({
      bareLoop: sample(120, 4),
      library: new Map(CONCURRENCIES.map((clients) => [clients, sample(130, 11)])),
      multiplexed: sample(90, 9),
      handOffAcross: sample(100, 5.1),
      crowd: { waiters: 2, handOffs: 23, seconds: 1, shares: [10, 13] },
    }),
  ).filter((goal) => !goal.met)
  expect(missed).toHaveLength(10)
})

test('the report names every goal that was missed, and how many were met', () => {
  const made = figures({ handOffAcross: sample(100, 6) })
  const text = report(made, goals(made), ['1 × CPU'], { seconds: 3, rounds: 2 })
  expect(text).toContain('10 of 11 met')
  expect(text).toMatch(
    /hand-off across two processes, p50 +\| ≤ 5.00 ms +\| 6.00 ms +\| \*\*missed\*\*/,
  )
})

test('pgbench logs are read in microseconds', () => {
  const read = new Sample()
  recordLog('0 1 250 0 1700000000 1\n1 1 750 0 1700000000 2\n', read)
  read.lasted(2)
  expect(read.count).toBe(2)
  expect(read.perSecond).toBe(1)
  expect(read.ms(1)).toBeCloseTo(0.75, 2)
})

test('a key with two holders makes the figures worthless', () => {
  const exclusion = new Exclusion()
  exclusion.granted('a', 1n)
  exclusion.granted('b', 2n)
  exclusion.released('a')
  exclusion.granted('a', 3n)
  expect(() => exclusion.check('run')).not.toThrow()
  exclusion.granted('a', 4n)
  expect(() => exclusion.check('run')).toThrow('run: 1 violations')
})

test.for([2n, 3n])('a token %s after 3 makes the figures worthless', (token) => {
  const exclusion = new Exclusion()
  exclusion.granted('a', 3n)
  exclusion.released('a')
  exclusion.granted('a', token)
  expect(exclusion.violations).toBe(1)
})
