import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decodePathSegment,
  encodePathSegment,
  formatHeaderText,
  formatTime,
  listings,
  operations,
  parseHeaderText,
  parseTime,
  toHttpRequest,
} from '../src/index.ts'

const wellFormed = fc.string({ unit: 'binary' }).filter((text) => !/\p{Cs}/u.test(text))

describe('a call is spread over path, headers and body', () => {
  test('acquire', () => {
    const input = { key: 'a/b', sessionId: 's', ttlMillis: 5, waitMillis: 0 }
    expect(toHttpRequest(operations.acquire, input)).toEqual({
      method: 'POST',
      path: '/v1/locks/a%2Fb/acquire',
      headers: { 'Content-Type': 'application/json' },
      body: '{"sessionId":"s","ttlMillis":5,"waitMillis":0}',
    })
  })

  test('release has no body, and carries its session only when it has one', () => {
    const input = { key: 'k', fencingToken: '7' }
    expect(toHttpRequest(operations.release, input)).toEqual({
      method: 'DELETE',
      path: '/v1/locks/k',
      headers: { 'X-Fencing-Token': '7' },
      body: undefined,
    })
    expect(toHttpRequest(operations.release, { ...input, sessionId: 's' }).headers).toEqual({
      'X-Fencing-Token': '7',
      'X-Session-Id': 's',
    })
  })

  test('a list asks in its query', () => {
    expect(toHttpRequest(listings.listLocks, { prefix: 'a/&=', limit: 5 }).path).toBe(
      '/v1/locks?prefix=a%2F%26%3D&limit=5',
    )
    expect(toHttpRequest(listings.listLocks, {}).path).toBe('/v1/locks')
  })
})

test('P-02: every key is one segment of a path, and comes back', () => {
  fc.assert(
    fc.property(wellFormed, (key) => {
      const segment = encodePathSegment(key)
      expect(segment).not.toMatch(/[/?#\s]/)
      expect(segment).not.toMatch(/^\.{1,2}$/)
      expect(decodePathSegment(segment)).toBe(key)
    }),
  )
})

test.each(['%', '%zz', '%ff', '%c3%28', '%ed%a0%80'])(
  '%s is no percent-encoded UTF-8',
  (segment) => {
    expect(decodePathSegment(segment)).toBeUndefined()
  },
)

test('any text goes through a header as its UTF-8, one character a byte, and comes back', () => {
  fc.assert(
    fc.property(wellFormed, (text) => {
      const value = formatHeaderText(text)
      expect(value).not.toMatch(/[^\0-\xff]/)
      expect(parseHeaderText(value)).toBe(text)
    }),
  )
  expect(parseHeaderText('\u00e9')).toBeUndefined()
})

test('times are RFC 3339, UTC, milliseconds', () => {
  const instant = new Date(1_700_000_000_123)
  expect(formatTime(instant)).toBe('2023-11-14T22:13:20.123Z')
  expect(parseTime(formatTime(instant))).toEqual(instant)
  for (const text of [
    '2023-11-14',
    '2023-11-14T22:13:20Z',
    '2023-11-14T22:13:20.123+01:00',
    'now',
  ]) {
    expect(parseTime(text)).toBeUndefined()
  }
})
