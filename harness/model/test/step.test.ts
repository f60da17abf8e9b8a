import { expect, test } from 'vitest'
import { type Action, FREE, type LockState, type Operation, step } from '../src/index.ts'

function by(session: string, action: Action): Operation {
  return { id: 1, process: 1, session, invokedAt: 0, endedAt: 1, ...action }
}

const granted = (session: string, token: bigint, until = 100): Operation =>
  by(session, { f: 'acquire', type: 'ok', token, until })
const renewed = (token: bigint, until: number): Operation =>
  by('s', { f: 'renew', type: 'ok', token, until })
const released = (token: bigint): Operation => by('s', { f: 'release', type: 'ok', token })
const refused = (f: 'acquire' | 'revoke', session = 'b'): Operation =>
  by(session, { f, type: 'fail', refused: true })
const unknown = (f: 'acquire' | 'revoke' | 'close', session: string): Operation =>
  by(session, { f, type: 'info' })

/** The state after all of them, at `latest`; `undefined` as soon as one is not allowed. */
function after(latest: number, ...ops: readonly Operation[]): LockState | undefined {
  return ops.reduce<LockState | undefined>((state, op) => state && step(state, op, latest), FREE)
}

test('FR-01: another gets the key only after a release, a revocation, an end, or expiry', () => {
  expect(after(99, granted('a', 1n), granted('b', 2n))).toBeUndefined()
  expect(after(100, granted('a', 1n), granted('b', 2n))?.holder?.session).toBe('b')
  expect(after(0, granted('a', 1n), released(1n), granted('b', 2n))).toBeDefined()
  const end = by('a', { f: 'close', type: 'ok' })
  expect(after(0, granted('a', 1n), end, granted('b', 2n))).toBeDefined()
  const revoked = by('op', { f: 'revoke', type: 'ok', token: 1n, floor: 5n })
  expect(after(0, granted('a', 1n), revoked, granted('b', 6n))).toBeDefined()
})

test('INV-04: a token is above every earlier one, and above the floor of a revocation', () => {
  expect(after(0, granted('a', 7n), released(7n), granted('b', 7n))).toBeUndefined()
  expect(after(0, granted('a', 7n), released(7n), granted('a', 6n))).toBeUndefined()
  expect(after(500, granted('a', 7n), granted('b', 7n))).toBeUndefined()
  const revoked = by('op', { f: 'revoke', type: 'ok', token: 1n, floor: 5n })
  expect(after(0, granted('a', 1n), revoked, granted('b', 5n))).toBeUndefined()
})

test('decision 3: whoever asks again gets the same grant, and no other while it lives', () => {
  expect(after(0, granted('a', 1n, 50), granted('a', 1n, 90))?.holder?.until).toBe(90)
  expect(after(0, granted('a', 1n), granted('a', 2n))).toBeUndefined()
  expect(after(0, granted('a', 1n), granted('b', 1n))).toBeUndefined()
})

test('FR-06: a renewal is of the live grant, and moves its end; lost is final', () => {
  expect(after(150, granted('a', 1n, 100), renewed(1n, 200), granted('b', 2n))).toBeUndefined()
  expect(after(200, granted('a', 1n, 100), renewed(1n, 200), granted('b', 2n))).toBeDefined()
  expect(after(200, granted('a', 1n, 100), granted('b', 2n), renewed(1n, 300))).toBeUndefined()
  const lost = by('a', { f: 'renew', type: 'fail', token: 1n, refused: true })
  expect(after(99, granted('a', 1n, 100), lost)).toBeUndefined()
  expect(after(100, granted('a', 1n, 100), lost, renewed(1n, 300))).toBeUndefined()
})

test('FR-05: a release is of the live grant; one that found nothing finds nothing again', () => {
  expect(after(200, granted('a', 1n), granted('b', 2n), released(1n))).toBeUndefined()
  expect(after(0, granted('a', 1n), released(1n), released(1n))).toBeUndefined()
  const gone = by('a', { f: 'release', type: 'fail', token: 1n, refused: true })
  expect(after(99, granted('a', 1n), gone)).toBeUndefined()
  expect(after(100, granted('a', 1n), gone)?.holder).toBeUndefined()
})

test('a grant that is over is released while its record lies there, and never renewed', () => {
  const lost = by('a', { f: 'renew', type: 'fail', token: 1n, refused: true })
  const over = [granted('a', 1n, 100), lost]
  expect(after(100, ...over, released(1n))).toBeDefined()
  expect(after(100, ...over, refused('acquire'))).toBeUndefined()
  expect(after(100, ...over, granted('a', 1n, 300))).toBeUndefined()
  expect(after(100, ...over, granted('b', 2n), released(1n))).toBeUndefined()
})

test('a refusal has a reason: another holds; what was never asked has none', () => {
  expect(after(0, refused('acquire'))).toBeUndefined()
  expect(after(0, granted('a', 1n), refused('acquire'))).toBeDefined()
  expect(after(500, granted('a', 1n), refused('acquire')), 'late is allowed').toBeDefined()
  expect(after(0, granted('a', 1n), refused('acquire', 'a'))).toBeUndefined()
  expect(after(0, granted('a', 1n), refused('revoke'))).toBeUndefined()
  expect(after(0, refused('revoke'))).toBe(FREE)
  expect(after(0, by('b', { f: 'acquire', type: 'fail', refused: false }))).toBe(FREE)
})

test('an unknown acquire that happened is a grant that nobody has seen, and used up a token', () => {
  expect(after(0, unknown('acquire', 'a'), refused('acquire'))).toBeDefined()
  expect(after(0, unknown('acquire', 'a'), granted('a', 1n), granted('b', 2n))).toBeUndefined()
  expect(after(0, unknown('acquire', 'a'), granted('b', 1n))).toBeUndefined()
  expect(after(0, unknown('acquire', 'a'), granted('b', 2n))).toBeDefined()
  expect(after(0, granted('a', 1n), unknown('acquire', 'b'))).toBeUndefined()
  expect(after(0, granted('a', 1n), unknown('acquire', 'a'))?.floor).toBe(1n)
  expect(after(100, granted('a', 1n), unknown('acquire', 'a'))?.floor, 'a new one').toBe(2n)
})

test('an unknown release, revocation or close frees the key if it happened', () => {
  const release = by('a', { f: 'release', type: 'info', token: 1n })
  expect(after(0, granted('a', 1n), release, granted('b', 2n))).toBeDefined()
  expect(after(0, granted('a', 1n), unknown('revoke', 'op'), granted('b', 2n))).toBeUndefined()
  expect(after(0, granted('a', 1n), unknown('revoke', 'op'), granted('b', 3n))).toBeDefined()
  expect(after(0, granted('a', 1n), unknown('close', 'a'), granted('b', 2n))).toBeDefined()
  expect(after(0, granted('a', 1n), unknown('close', 'c'), granted('b', 2n))).toBeUndefined()
})

test('what changes nothing returns the very same state', () => {
  const held = after(0, granted('a', 1n)) ?? FREE
  for (const op of [refused('acquire'), renewed(1n, 1), unknown('close', 'c')]) {
    expect(step(held, op, 0)).toBe(held)
  }
})
