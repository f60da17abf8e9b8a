import {
  ContentionError,
  FencedOutError,
  LockError,
  LockLostError,
  NotLeaderError,
  RetryableLockError,
  SessionDeadError,
  TerminalLockError,
} from '@dlock/lock-api'
import { describe, expect, test } from 'vitest'

const retryable = [new ContentionError('a conflict'), new NotLeaderError('an election')]
const terminal = [
  new LockLostError('job', 7n, 'its deadline passed'),
  new FencedOutError('job', 7n, 9n),
  new SessionDeadError('expired'),
]

describe('T-004: the verdict is a type, no flag and no string', () => {
  test.each(retryable)('$name is retryable', (error) => {
    expect(error).toBeInstanceOf(RetryableLockError)
    expect(error).not.toBeInstanceOf(TerminalLockError)
  })

  test.each(terminal)('$name is terminal', (error) => {
    expect(error).toBeInstanceOf(TerminalLockError)
    expect(error).not.toBeInstanceOf(RetryableLockError)
  })

  test.each([...retryable, ...terminal])('$name is a LockError, by its own name', (error) => {
    expect(error).toBeInstanceOf(LockError)
    expect(error).toBeInstanceOf(Error)
    expect(error.name).toBe(error.constructor.name)
    expect(Object.keys(error).filter((key) => /retry(able|Safe)$/i.test(key))).toEqual([])
  })

  test.each([...retryable, ...terminal])('$name carries no other error', (error) => {
    expect('cause' in error).toBe(false)
  })
})

test('T-004: FencedOutError exposes the key and both tokens, and says them', () => {
  const error = new FencedOutError('job', 2n ** 53n + 1n, 2n ** 53n + 3n)
  expect(error.key).toBe('job')
  expect(error.presentedToken).toBe(9_007_199_254_740_993n)
  expect(error.storedToken).toBe(9_007_199_254_740_995n)
  expect(error.message).toContain('9007199254740993')
  expect(error.message).toContain('9007199254740995')
})

test('LockLostError says which lock, and why', () => {
  const error = new LockLostError('job', 7n, 'its deadline passed')
  expect([error.key, error.fencingToken]).toEqual(['job', 7n])
  expect(error.message).toContain('its deadline passed')
})

test('a retryable failure says when to come back, if the service said so', () => {
  expect(new ContentionError('full').retryAfterMs).toBeUndefined()
  expect(new ContentionError('full', { retryAfterMs: 250 }).retryAfterMs).toBe(250)
  expect(
    new NotLeaderError('an election', { retryAfterMs: undefined }).retryAfterMs,
  ).toBeUndefined()
})

test('SessionDeadError tells an expired session from an unknown one, and never its id', () => {
  expect(new SessionDeadError('expired').state).toBe('expired')
  expect(new SessionDeadError('unknown').state).toBe('unknown')
  expect(new SessionDeadError('expired').message).not.toBe(new SessionDeadError('unknown').message)
})
