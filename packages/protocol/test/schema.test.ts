import Type from 'typebox'
import { describe, expect, test } from 'vitest'
import {
  type Listings,
  listings,
  type Operations,
  operations,
  Schema,
  type TokenCounterOperations,
  tokenCounterOperations,
} from '../src/index.ts'

const session = 'session-1'

describe('inputs are closed, uncoerced, and every fault is named', () => {
  test('an unknown field, a wrong type, a number out of range and a missing field at once', () => {
    const faults = operations.acquire.input.faults({
      key: 7,
      ttlMillis: 0,
      wait: 5,
      waitMillis: '1',
    })
    expect(faults).toEqual(
      expect.arrayContaining([
        { field: 'sessionId', message: 'is required' },
        { field: 'wait', message: 'is not a known field' },
        { field: 'key', message: 'must be string, got 7' },
        { field: 'ttlMillis', message: 'must be from 1 to 31536000000, got 0' },
        { field: 'waitMillis', message: 'must be integer, got string' },
      ]),
    )
    expect(faults).toHaveLength(5)
  })

  test.each([null, undefined, 5, 'text', [], [1], true])('%j is no input', (input) => {
    for (const operation of Object.values({
      ...operations,
      ...listings,
      ...tokenCounterOperations,
    })) {
      expect(operation.input.faults(input)).not.toEqual([])
    }
  })

  test.each([0, -1, 1.5, Number.NaN, 2 ** 53, 31_536_000_001, '30', null, true])(
    'P-14: a lease of %j is refused, never rounded',
    (ttlMillis) => {
      const faults = operations.acquire.input.faults({ key: 'k', sessionId: session, ttlMillis })
      expect(faults.map(({ field }) => field)).toEqual(['ttlMillis'])
    },
  )

  test.each([1, 999, 1_500, 2_592_000_000])('P-14: a lease of %i ms is taken', (ttlMillis) => {
    expect(operations.acquire.input.accepts({ key: 'k', sessionId: session, ttlMillis })).toBe(true)
  })

  test('P-02: keys are counted in bytes of UTF-8, and hold no control character', () => {
    const takes = (key: string): boolean => operations.inspect.input.accepts({ key })
    expect(takes('k'.repeat(512))).toBe(true)
    expect(takes('k'.repeat(513))).toBe(false)
    expect(takes('é'.repeat(256))).toBe(true)
    expect(takes('é'.repeat(257))).toBe(false)
    for (const key of ['job/1', 'job%2F1', '.', '..', 'ключ', '鍵', '🔒'])
      expect(takes(key)).toBe(true)
    for (const key of ['', ' ', 'a\u0000', 'a\u007f', 'a\n', '\ud800'])
      expect(takes(key)).toBe(false)
  })

  test('an inherited name is an unknown field like any other', () => {
    const input = JSON.parse('{"key":"k","__proto__":1,"constructor":2,"toString":3}') as unknown
    expect(
      operations.inspect.input
        .faults(input)
        .map(({ field }) => field)
        .sort(),
    ).toEqual(['__proto__', 'constructor', 'toString'])
  })

  test('a fault repeats no string of the input, and only the start of a field it named', () => {
    const secret = 'x'.repeat(4_000)
    const text = JSON.stringify(
      operations.closeSession.input.faults({ sessionId: secret, [secret]: 1 }),
    )
    expect(text).not.toContain('x'.repeat(65))
  })

  test('an array of wrong items is answered within a bound', () => {
    const renew = Array.from({ length: 1_000 }, () => ({ key: '', fencingToken: 'no' }))
    const faults = operations.heartbeat.input.faults({ sessionId: session, renew })
    expect(faults.length).toBeGreaterThan(50)
    expect(faults.length).toBeLessThanOrEqual(64)
  })
})

test('outputs are open: a later server may say more', () => {
  expect(operations.inspect.output.accepts({ held: false, key: 'k', news: 1 })).toBe(true)
})

test('the tables say where each field of an input travels', () => {
  const table: Operations & Listings & TokenCounterOperations = {
    ...operations,
    ...listings,
    ...tokenCounterOperations,
  }
  for (const operation of Object.values(table)) {
    const { properties } = operation.input.json as { properties: object }
    const placed = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, field]) => field ?? '')
    for (const field of [...placed, ...Object.keys(operation.headers)]) {
      expect(properties).toHaveProperty(field)
    }
  }
})

test('a schema whose values are not what it claims does not compile', () => {
  Schema.of<{ readonly key: string }>()(Type.Object({ key: Type.String() }))
  // @ts-expect-error -- the key is a number here and a string there
  Schema.of<{ readonly key: string }>()(Type.Object({ key: Type.Number() }))
  // @ts-expect-error -- the field is missing here
  Schema.of<{ readonly key: string; readonly more?: string }>()(Type.Object({ key: Type.String() }))
})
