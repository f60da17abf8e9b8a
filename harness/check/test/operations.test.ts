import type { Event } from '@dlock/model'
import { expect, test } from 'vitest'
import { check, checkText, operationsOf } from '../src/index.ts'

const begun: Event = {
  id: 1,
  process: 1,
  session: 's',
  type: 'invoke',
  f: 'acquire',
  value: null,
  time: 10,
}
const ended: Event = { ...begun, type: 'ok', value: '7', time: 20, until: 99 }
const renewing: Event = { ...begun, id: 2, f: 'renew', value: '7', time: 30 }
const header = { history: 1, key: 'k', seed: null, backend: 'by hand', settings: {} } as const

test('the two lines of a call become one operation', () => {
  expect(operationsOf([begun, ended])).toEqual([
    {
      id: 1,
      process: 1,
      session: 's',
      f: 'acquire',
      type: 'ok',
      token: 7n,
      until: 99,
      invokedAt: 10,
      endedAt: 20,
    },
  ])
})

test('a call that is open at the end is unknown, and so for ever', () => {
  const [op] = operationsOf([begun])
  expect(op).toMatchObject({ type: 'info', endedAt: Number.POSITIVE_INFINITY })
})

const info: Event = { ...begun, type: 'info', time: 20 }

test.each<readonly [string, readonly Event[]]>([
  ['ok of acquire 1: time goes back from 10', [begun, { ...ended, time: 9 }]],
  ['invoke of acquire 1: its id was used before', [begun, ended, { ...begun, time: 30 }]],
  ['invoke of acquire 2: process 1 has a call open already', [begun, { ...begun, id: 2 }]],
  ['invoke of renew 2: process 1 ended with an unknown call', [begun, info, renewing]],
  ['ok of acquire 1: it ends a call that is not open', [ended]],
  ['ok of acquire 5: it ends a call that is not open', [begun, { ...ended, id: 5 }]],
  ['ok of acquire 1: it changes its session', [begun, { ...ended, session: 't' }]],
  ['ok of renew 1: it ends as renew and began as acquire', [begun, { ...ended, f: 'renew' }]],
  ['ok of acquire 1: it has no token', [begun, { ...ended, value: null }]],
  ['ok of acquire 1: it has no deadline', [begun, { ...begun, type: 'ok', value: '7', time: 20 }]],
  [
    'ok of renew 2: it changes its token',
    [renewing, { ...renewing, type: 'ok', value: '8', until: 99 }],
  ],
  [
    'fail of renew 2: it names no token',
    [
      { ...renewing, value: null },
      { ...renewing, type: 'fail' },
    ],
  ],
])('not well-formed: %s', (problem, events) => {
  expect(check({ header, events })).toMatchObject({ kind: 'malformed' })
  expect(() => operationsOf(events)).toThrow(problem)
})

test('a file that is no history is malformed too, and never a yes', () => {
  expect(checkText('')).toEqual({ kind: 'malformed', problems: ['line 1 is not JSON'] })
})
