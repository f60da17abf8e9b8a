import { expect, test } from 'vitest'
import { formatHistory, type History, parseHistory } from '../src/index.ts'

const history: History = {
  header: { history: 1, key: 'k', seed: 7, backend: 'memory', settings: { clients: 2 } },
  events: [
    { id: 1, process: 0, session: 's', type: 'invoke', f: 'acquire', value: null, time: 10 },
    // Above 2^53: a number would round it.
    {
      id: 1,
      process: 0,
      session: 's',
      type: 'ok',
      f: 'acquire',
      value: '9223372036854775807',
      time: 20,
      until: 99,
    },
  ],
}

test('a history is read as it was written, a line for the header and one for each event', () => {
  const text = formatHistory(history)
  expect(text.split('\n')).toHaveLength(4)
  expect(parseHistory(text)).toEqual(history)
})

test.each([
  ['', 'line 1 is not JSON'],
  ['{"history":2}', 'line 1 is no header'],
  [`${formatHistory(history)}{"id":1}`, 'line 4 is no event'],
  [formatHistory(history).replace('9223372036854775807', '-1'), 'line 3 is no event'],
  [formatHistory(history).replace('"invoke"', '"begin"'), 'line 2 is no event'],
])('a line that cannot be is named: %#', (text, message) => {
  expect(() => parseHistory(text)).toThrow(new SyntaxError(message))
})
