import { MAX_FENCING_TOKEN } from '@dlock/lock-api'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatFencingToken, operations, parseFencingToken } from '../src/index.ts'

const anyToken = fc.bigInt({ min: 1n, max: MAX_FENCING_TOKEN })

describe('P-25: tokens on the wire are exact and have one spelling', () => {
  test('every token survives being spelled and read', () => {
    fc.assert(
      fc.property(anyToken, (token) => parseFencingToken(formatFencingToken(token)) === token),
    )
  })

  test('the largest token and one beyond 2^53 keep every digit', () => {
    expect(parseFencingToken('9223372036854775807')).toBe(MAX_FENCING_TOKEN)
    expect(parseFencingToken('9007199254740993')).toBe(9007199254740993n)
  })

  const refused = [
    '',
    '0',
    '00',
    '01',
    '+1',
    '-1',
    ' 1',
    '1 ',
    '1\n',
    '\t1',
    '1.0',
    '1e3',
    '0x10',
    '1_000',
    '1,000',
    'NaN',
    'Infinity',
    '١',
    '１',
    '9223372036854775808',
    '99999999999999999999',
    '1n',
    'one',
    '1, 2',
  ]
  test.each(refused)('%j is no token, in no schema', (text) => {
    expect(parseFencingToken(text)).toBeUndefined()
    const input = { key: 'k', sessionId: 's', fencingToken: text }
    expect(operations.renew.input.faults(input).map(({ field }) => field)).toContain('fencingToken')
  })

  test('text that is accepted is the token it spells and nothing else', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9+ -]{0,21}$/)), (text) => {
        const token = parseFencingToken(text)
        return token === undefined || formatFencingToken(token) === text
      }),
    )
  })

  test('a JSON number is no token, however small', () => {
    const input = { key: 'k', sessionId: 's', fencingToken: 5 }
    expect(operations.renew.input.faults(input)).toEqual([
      { field: 'fencingToken', message: 'must be string, got 5' },
    ])
  })
})
