import { expect, it } from 'vitest'
import { formatDuration, parseDuration } from '../src/index.ts'

it.each([
  ['0ms', 0],
  ['250ms', 250],
  ['15s', 15_000],
  ['1.5s', 1_500],
  ['5m', 300_000],
  ['1h', 3_600_000],
  ['30d', 2_592_000_000],
])('%s is %i ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})

it.each(['', '15', '-1s', '+1s', '1e3s', ' 1s', '1s ', '1 s', '1S', '0.5ms', '.5s', '1.s', '9e9d'])(
  '%j is no duration',
  (text) => {
    expect(parseDuration(text)).toBeUndefined()
  },
)

it('one that is not exact in milliseconds is none', () => {
  expect(parseDuration('1.0001s')).toBeUndefined()
  expect(parseDuration('99999999999999d')).toBeUndefined()
})

it.each([
  [0, '0ms'],
  [1, '1ms'],
  [1_500, '1500ms'],
  [15_000, '15s'],
  [3_600_000, '1h'],
  [31_536_000_000, '365d'],
])('%i ms is written %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text)
})
