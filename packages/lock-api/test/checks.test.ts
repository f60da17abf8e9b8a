import { Buffer } from 'node:buffer'
import {
  checkFencingToken,
  checkInstant,
  checkKey,
  checkMaxWaitMs,
  checkOperator,
  checkOwnerId,
  checkReason,
  checkSessionId,
  checkTtlMs,
  MAX_FENCING_TOKEN,
  MAX_KEY_BYTES,
  MAX_TTL_MS,
  MAX_WAIT_MS,
} from '@dlock/lock-api'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

/** Any text at all: lone surrogates and control characters included. */
const anyText = fc.string({ unit: 'binary', maxLength: 600 }).map((text) => `${text}`)
const brokenText = fc.string({ unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)) })

function accepts(check: () => unknown): boolean {
  try {
    check()
    return true
  } catch (error) {
    expect(error).toSatisfy((e: unknown) => e instanceof RangeError || e instanceof TypeError)
    return false
  }
}

describe('P-02: a key is 1 to 512 bytes of UTF-8', () => {
  test('exactly the well-formed texts without control characters that are not blank', () => {
    fc.assert(
      fc.property(fc.oneof(anyText, brokenText), (text) => {
        const bytes = Buffer.byteLength(text)
        // What UTF-8 cannot hold does not come back as it went in.
        const wellFormed = Buffer.from(text).toString() === text
        const sound = wellFormed && !/\p{Cc}/u.test(text) && text.trim() !== ''
        expect(accepts(() => checkKey(text))).toBe(sound && bytes <= MAX_KEY_BYTES)
      }),
      { numRuns: 2_000 },
    )
  })

  test.each([
    'k'.repeat(512),
    'é'.repeat(256),
    `${'€'.repeat(170)}kk`,
    '\u{1f512}'.repeat(128),
    'job%2F1',
    ' job ',
    'a b',
  ])('%s', (key) => {
    expect(checkKey(key)).toBe(key)
  })

  test.each(['k'.repeat(513), `${'é'.repeat(256)}k`, '€'.repeat(171), '\u{1f512}'.repeat(129)])(
    'one byte more is too long, and the message says how long it is',
    (key) => {
      expect(() => checkKey(key)).toThrow(`got ${Buffer.byteLength(key)}`)
    },
  )
})

describe('owners, operators, reasons and session ids', () => {
  test.each([
    { check: checkOwnerId, max: 64, field: 'ownerId' },
    { check: checkOperator, max: 128, field: 'operator' },
    { check: checkReason, max: 1_024, field: 'reason' },
  ])('$field: 1 to $max characters', ({ check, max, field }) => {
    expect(check('x')).toBe('x')
    expect(check('x'.repeat(max))).toHaveLength(max)
    expect(() => check('x'.repeat(max + 1))).toThrow(RangeError)
    expect(() => check('x'.repeat(max + 1))).toThrow(field)
    for (const bad of ['', ' ', '\u00a0', 'a\u0000', 'a\u009f', 'a\nb', '\udc00x']) {
      expect(() => check(bad)).toThrow(RangeError)
    }
  })

  test('a session id is not blank, and no message gives it away', () => {
    expect(checkSessionId('s')).toBe('s')
    expect(() => checkSessionId('')).toThrow(RangeError)
    try {
      checkSessionId('secret-part\u0000')
      expect.unreachable()
    } catch (error) {
      expect((error as Error).message).not.toContain('secret-part')
    }
  })

  test('a text of another type is a TypeError that names the field', () => {
    for (const bad of [undefined, null, 7, 7n, {}, ['job']]) {
      expect(() => checkKey(bad as string)).toThrow(TypeError)
      expect(() => checkOwnerId(bad as string, 'X-Owner-Id')).toThrow('X-Owner-Id')
    }
  })
})

describe('P-14: durations are whole milliseconds in range', () => {
  test('a TTL', () => {
    fc.assert(
      fc.property(fc.double(), (ttlMs) => {
        const sound = Number.isInteger(ttlMs) && ttlMs >= 1 && ttlMs <= MAX_TTL_MS
        expect(accepts(() => checkTtlMs(ttlMs))).toBe(sound)
      }),
    )
    for (const good of [1, 999, 1_500, 30 * 86_400_000, MAX_TTL_MS]) {
      expect(checkTtlMs(good)).toBe(good)
    }
    for (const bad of [0, -1, Number.NaN, 1.5, 2 ** 53, MAX_TTL_MS + 1, Infinity, -0]) {
      expect(() => checkTtlMs(bad)).toThrow(RangeError)
    }
    for (const bad of ['1000', 1_000n, undefined, null]) {
      expect(() => checkTtlMs(bad as unknown as number)).toThrow(TypeError)
    }
  })

  test('a wait, which may be none', () => {
    for (const good of [0, 1, MAX_WAIT_MS]) expect(checkMaxWaitMs(good)).toBe(good)
    for (const bad of [-1, 0.5, MAX_WAIT_MS + 1, Number.NaN]) {
      expect(() => checkMaxWaitMs(bad)).toThrow(RangeError)
    }
  })

  test('a service may allow less, and the message says the range and the value', () => {
    expect(() => checkTtlMs(60_001, 'ttlMillis', 60_000)).toThrow(
      'ttlMillis must be a whole number of milliseconds from 1 to 60000, got 60001',
    )
  })
})

test('P-25: a token is a bigint from 1 to 2^63 − 1', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }), (token) => {
      expect(accepts(() => checkFencingToken(token))).toBe(token >= 1n && token < 2n ** 63n)
    }),
  )
  expect(checkFencingToken(MAX_FENCING_TOKEN)).toBe(9_223_372_036_854_775_807n)
  for (const bad of [1, '1', undefined]) {
    expect(() => checkFencingToken(bad as unknown as bigint)).toThrow(TypeError)
  }
})

test('an instant is a valid date', () => {
  expect(checkInstant(new Date(5), 'now')).toBe(5)
  expect(() => checkInstant(new Date(Number.NaN), 'now')).toThrow(RangeError)
  expect(() => checkInstant(5 as unknown as Date, 'now')).toThrow(TypeError)
})
