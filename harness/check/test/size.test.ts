import type { Event, History } from '@dlock/model'
import { MemoryStore } from '@dlock/store-memory'
import { beforeAll, expect, test } from 'vitest'
import { check, describeVerdict, operationsOf } from '../src/index.ts'
import { atTwoEngines } from './services.ts'

/**
 * One hot key, 12 clients at two engines, one call in ten failing, more than 5 000 calls. The bound
 * on the places visited is what keeps it far under a minute; Vitest's time-out is a minute.
 */
const PLACES = 100_000

let history: History

beforeAll(async () => {
  history = await atTwoEngines((clock) => new MemoryStore({ clock }), 3, {
    clients: 12,
    turns: 320,
  })
})

test('a hot key’s 5 000 calls under faults are checked', () => {
  const calls = operationsOf(history.events)
  expect(calls.length).toBeGreaterThan(5_000)
  expect(calls.filter((op) => op.type === 'info').length).toBeGreaterThan(100)
  expect(describeVerdict(check(history, PLACES))).toMatch(/^linearizable/)
})

test('one wrong token near the end of the first thousand is found', () => {
  const begun = history.events.slice(0, 2_000)
  const grants = begun.filter(({ type, f }) => type === 'ok' && f === 'acquire')
  const [victim, twin] = [grants.at(-20), grants.at(-40)]
  const events = begun.map(
    (event): Event => (event === victim ? { ...event, value: twin?.value ?? null } : event),
  )
  expect(check({ ...history, events }, PLACES).kind).toBe('impossible')
})

test('whoever may not look far enough does not say yes', () => {
  expect(check(history, 10)).toMatchObject({ kind: 'undecided' })
})
