import { expect, test } from 'vitest'
import { callFrame, cancelFrame, serverFrame, wireEvent } from '../src/index.ts'

test('a call names one of L1 … L8, with an id from 1', () => {
  const frame = { id: 1, op: 'acquire', owner: 'w', in: { key: 'k' } }
  expect(callFrame.accepts(frame)).toBe(true)
  expect(callFrame.accepts({ ...frame, op: 'listLocks' })).toBe(false)
  expect(callFrame.accepts({ ...frame, op: 'toString' })).toBe(false)
  for (const id of [0, -1, 1.5, '1', 2 ** 53, null])
    expect(callFrame.accepts({ ...frame, id })).toBe(false)
  expect(callFrame.accepts({ ...frame, more: 1 })).toBe(false)
  expect(callFrame.accepts({ id: 1, op: 'acquire' })).toBe(false)
})

test('a cancel says true and nothing else', () => {
  expect(cancelFrame.accepts({ id: 1, cancel: true })).toBe(true)
  expect(cancelFrame.accepts({ id: 1, cancel: false })).toBe(false)
  expect(cancelFrame.accepts({ id: 1, cancel: true, op: 'acquire' })).toBe(false)
})

test('an answer is an output or an envelope', () => {
  const error = { code: 'LOCK_LOST', message: 'gone', retrySafe: false, traceId: '0'.repeat(32) }
  expect(serverFrame.accepts({ id: 1, out: {} })).toBe(true)
  expect(serverFrame.accepts({ id: 1, error })).toBe(true)
  expect(serverFrame.accepts({ id: 1, error: { ...error, code: 'OOPS' } })).toBe(false)
  expect(serverFrame.accepts({ id: 1 })).toBe(false)
})

test('an event has its own fields', () => {
  const at = '2026-01-31T12:00:00.000Z'
  expect(wireEvent.accepts({ type: 'gap', at, missed: 3 })).toBe(true)
  expect(wireEvent.accepts({ type: 'lock_granted', at, key: 'k' })).toBe(false)
})
