import { LockHandle, LockInfo, LockOutcome, MAX_FENCING_TOKEN } from '@dlock/lock-api'
import { describe, expect, test } from 'vitest'

const AT = new Date('2026-01-01T00:00:00Z')
const LATER = new Date('2026-01-01T00:00:15Z')

interface HandleParts {
  key: string
  ownerId: string
  sessionId: string
  fencingToken: bigint
  clientDeadlineNanos: bigint
  serverExpiry: Date
}

const handleParts: HandleParts = {
  key: 'payout:42',
  ownerId: 'worker-7',
  sessionId: 'a session',
  fencingToken: 7n,
  clientDeadlineNanos: 1_000n,
  serverExpiry: LATER,
}

function handle(change: Partial<HandleParts> = {}): LockHandle {
  const parts = { ...handleParts, ...change }
  return new LockHandle(
    parts.key,
    parts.ownerId,
    parts.sessionId,
    parts.fencingToken,
    parts.clientDeadlineNanos,
    parts.serverExpiry,
  )
}

interface InfoParts {
  key: string
  ownerId: string
  fencingToken: bigint
  acquiredAt: Date
  expiresAt: Date
  waiterCount: number
}

const infoParts: InfoParts = {
  key: 'payout:42',
  ownerId: 'worker-7',
  fencingToken: 7n,
  acquiredAt: AT,
  expiresAt: LATER,
  waiterCount: 0,
}

function info(change: Partial<InfoParts> = {}): LockInfo {
  const parts = { ...infoParts, ...change }
  return new LockInfo(
    parts.key,
    parts.ownerId,
    parts.fencingToken,
    parts.acquiredAt,
    parts.expiresAt,
    parts.waiterCount,
  )
}

describe('T-004: a record rejects what cannot be', () => {
  test.each([
    ['a blank key', { key: ' ' }],
    ['an empty key', { key: '' }],
    ['a blank owner', { ownerId: '\u2003' }],
    ['a blank session', { sessionId: '' }],
    ['a token of zero', { fencingToken: 0n }],
    ['a negative token', { fencingToken: -1n }],
    ['a token above 2^63 − 1', { fencingToken: MAX_FENCING_TOKEN + 1n }],
    ['a date that is none', { serverExpiry: new Date(Number.NaN) }],
  ])('LockHandle: %s', (_, change) => {
    expect(() => handle(change)).toThrow(RangeError)
  })

  test.each([
    ['key', { key: null as unknown as string }],
    ['ownerId', { ownerId: 7 as unknown as string }],
    ['sessionId', { sessionId: undefined as unknown as string }],
    ['fencingToken', { fencingToken: 7 as unknown as bigint }],
    ['clientDeadlineNanos', { clientDeadlineNanos: 7 as unknown as bigint }],
    ['serverExpiry', { serverExpiry: 7 as unknown as Date }],
  ])('LockHandle: %s of another type', (field, change) => {
    expect(() => handle(change)).toThrow(TypeError)
    expect(() => handle(change)).toThrow(field)
  })

  test.each([
    ['a blank key', { key: '\t' }],
    ['a blank owner', { ownerId: '' }],
    ['a token of zero', { fencingToken: 0n }],
    ['a negative number of waiters', { waiterCount: -1 }],
    ['half a waiter', { waiterCount: 0.5 }],
    ['a date that is none', { acquiredAt: new Date(Number.NaN) }],
  ])('LockInfo: %s', (_, change) => {
    expect(() => info(change)).toThrow(RangeError)
  })

  test('LockInfo: a field of another type', () => {
    expect(() => info({ waiterCount: '1' as unknown as number })).toThrow(TypeError)
    expect(() => info({ expiresAt: '2026' as unknown as Date })).toThrow(TypeError)
  })

  test('LockOutcome: a floor that is not above the token it fences out', () => {
    expect(() => new LockOutcome('job', true, 'worker', 7n, 7n)).toThrow(RangeError)
    expect(() => new LockOutcome('job', true, 'worker', 7n, 6n)).toThrow(RangeError)
    expect(new LockOutcome('job', true, 'worker', 7n, 8n).newTokenFloor).toBe(8n)
  })

  test('LockOutcome: a revocation without its grant, or a grant without a revocation', () => {
    expect(() => new LockOutcome('job', true, 'worker', 7n, undefined)).toThrow(TypeError)
    expect(() => new LockOutcome('job', true, undefined, 7n, 8n)).toThrow(TypeError)
    expect(() => new LockOutcome('job', false, 'worker', undefined, undefined)).toThrow(TypeError)
    expect(() => new LockOutcome('job', false, undefined, undefined, 8n)).toThrow(TypeError)
    expect(() => new LockOutcome(' ', false, undefined, undefined, undefined)).toThrow(RangeError)
    expect(() => new LockOutcome('job', true, ' ', 7n, 8n)).toThrow(RangeError)
    expect(() => new LockOutcome('job', true, 'worker', 0n, 8n)).toThrow(RangeError)
  })
})

describe('T-004: equality is component-wise', () => {
  test.each<Partial<HandleParts>>([
    { key: 'payout:43' },
    { ownerId: 'worker-8' },
    { sessionId: 'another session' },
    { fencingToken: 8n },
    { clientDeadlineNanos: 1_001n },
    { serverExpiry: AT },
  ])('two LockHandles that differ in %o are not equal', (change) => {
    expect(handle().equals(handle())).toBe(true)
    expect(handle().equals(handle(change))).toBe(false)
    expect(handle(change).equals(handle())).toBe(false)
  })

  test.each<Partial<InfoParts>>([
    { key: 'payout:43' },
    { ownerId: 'worker-8' },
    { fencingToken: 8n },
    { acquiredAt: LATER },
    { expiresAt: AT },
    { waiterCount: 1 },
  ])('two LockInfos that differ in %o are not equal', (change) => {
    expect(info().equals(info())).toBe(true)
    expect(info().equals(info(change))).toBe(false)
  })

  test('two LockOutcomes are equal when all five components are', () => {
    const outcome = () => new LockOutcome('job', true, 'worker', 7n, 8n)
    expect(outcome().equals(outcome())).toBe(true)
    expect(outcome().equals(new LockOutcome('job2', true, 'worker', 7n, 8n))).toBe(false)
    expect(outcome().equals(new LockOutcome('job', true, 'other', 7n, 8n))).toBe(false)
    expect(outcome().equals(new LockOutcome('job', true, 'worker', 6n, 8n))).toBe(false)
    expect(outcome().equals(new LockOutcome('job', true, 'worker', 7n, 9n))).toBe(false)
    expect(outcome().equals(LockOutcome.notHeld('job'))).toBe(false)
    expect(LockOutcome.notHeld('job').equals(LockOutcome.notHeld('job'))).toBe(true)
  })

  test('a look-alike is equal to no record, and harms none', () => {
    const lookAlike = { ...handleParts, equals: () => true } as unknown as LockHandle
    expect(handle().equals(lookAlike)).toBe(false)
    expect(handle().equals(undefined as unknown as LockHandle)).toBe(false)
    expect(info().equals({ ...infoParts } as unknown as LockInfo)).toBe(false)
  })
})

describe('records are immutable', () => {
  test.each([handle(), info(), LockOutcome.notHeld('job')])('%o', (record) => {
    expect(Object.isFrozen(record)).toBe(true)
    expect(() => Object.assign(record, { key: 'another' })).toThrow(TypeError)
  })

  test('nobody changes a record through a date that it gave away, or was given', () => {
    const given = new Date(LATER)
    const record = handle({ serverExpiry: given })
    given.setTime(0)
    record.serverExpiry.setTime(0)
    expect(record.serverExpiry).toEqual(LATER)
    const view = info()
    view.expiresAt.setTime(0)
    view.acquiredAt.setTime(0)
    expect([view.acquiredAt, view.expiresAt]).toEqual([AT, LATER])
  })

  test('another deadline, or count of waiters, is another record', () => {
    const moved = handle().withClientDeadline(2_000n)
    expect(moved.equals(handle({ clientDeadlineNanos: 2_000n }))).toBe(true)
    expect(
      info()
        .withWaiterCount(3)
        .equals(info({ waiterCount: 3 })),
    ).toBe(true)
  })
})

test('P-25: a token above 2^53 comes out as it went in', () => {
  expect(handle({ fencingToken: 2n ** 53n + 1n }).fencingToken).toBe(9_007_199_254_740_993n)
  expect(handle({ fencingToken: MAX_FENCING_TOKEN }).fencingToken).toBe(2n ** 63n - 1n)
})
