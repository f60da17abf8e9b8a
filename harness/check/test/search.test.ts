import type { Action, Operation } from '@dlock/model'
import { expect, test } from 'vitest'
import { search } from '../src/index.ts'

let calls = 0

/** A call of its own process. Instants are small numbers. */
function call(session: string, invokedAt: number, endedAt: number, action: Action): Operation {
  calls += 1
  return { id: calls, process: calls, session, invokedAt, endedAt, ...action }
}

const granted = (token: bigint): Action => ({ f: 'acquire', type: 'ok', token, until: 1_000 })
const refused: Action = { f: 'acquire', type: 'fail', refused: true }
const unknown: Action = { f: 'acquire', type: 'info' }
const FOREVER = Number.POSITIVE_INFINITY

test('real time counts: what ended before another began comes first', () => {
  const first = call('a', 0, 1, granted(2n))
  expect(search([first, call('a', 2, 3, granted(1n))]).kind).toBe('impossible')
  const overlapping = call('b', 0, 3, granted(1n))
  const release: Action = { f: 'release', type: 'ok', token: 1n }
  expect(search([first, overlapping, call('b', 0, 3, release)]).kind).toBe('linearizable')
})

test('a close that changes nothing yet waits: it may have to end a later grant', () => {
  const history = [
    call('a', 0, 10, { f: 'close', type: 'ok' }),
    call('a', 1, 2, granted(1n)),
    call('b', 3, 4, granted(2n)),
  ]
  expect(search(history).kind).toBe('linearizable')
})

test('whose an unseen grant is matters to who is refused: a token for each is not there', () => {
  const history = [
    call('a', 0, FOREVER, unknown),
    call('b', 0, FOREVER, unknown),
    call('x', 10, 11, refused),
    call('a', 12, 13, refused),
    call('c', 20, 21, granted(2n)),
  ]
  expect(search(history).kind).toBe('linearizable')
  expect(search(history.slice(0, 1).concat(history.slice(2))).kind).toBe('impossible')
})

test('an unknown release frees the key no sooner than it began', () => {
  const release: Action = { f: 'release', type: 'info', token: 1n }
  const begun = (at: number): Operation[] => [
    call('a', 0, 1, granted(1n)),
    call('a', at, FOREVER, release),
    call('b', 5, 6, granted(2n)),
  ]
  expect(search(begun(6)).kind).toBe('linearizable')
  expect(search(begun(7)).kind).toBe('impossible')
})

test('the counterexample says what is stuck, and how far the others got', () => {
  const history = [call('a', 0, 1, granted(1n)), call('b', 2, 3, granted(2n))]
  const found = search(history)
  expect(found).toMatchObject({
    kind: 'impossible',
    counterexample: {
      order: [{ session: 'a' }],
      stuck: { session: 'b' },
      state: { holder: { session: 'a', token: 1n } },
    },
  })
})
