import {
  ContentionError,
  FencedOutError,
  NotLeaderError,
  RetryableLockError,
  SessionDeadError,
  TerminalLockError,
} from '@dlock/lock-api'
import { describe, expect, test } from 'vitest'
import {
  type ErrorCode,
  envelopeOf,
  errorEnvelope,
  errorOf,
  errorTable,
  Failure,
  failureOf,
  fencedOutFailure,
  RemoteError,
} from '../src/index.ts'

const call = { traceId: '0af7651916cd43dd8448eb211c80319c', repeatable: true }
const roundTrip = (error: unknown): Error => errorOf(envelopeOf(failureOf(error), call))

describe('the error table', () => {
  const pinned: readonly [ErrorCode, number, boolean | 'if-repeatable'][] = [
    ['LOCK_CONTENDED', 409, true],
    ['CONTENTION_EXCEEDED', 429, true],
    ['NOT_LEADER', 503, true],
    ['STORE_UNAVAILABLE', 503, 'if-repeatable'],
    ['LOCK_LOST', 409, false],
    ['SESSION_UNKNOWN', 404, false],
    ['SESSION_EXPIRED', 410, false],
    ['INVALID_TOKEN', 400, false],
    ['VALIDATION_FAILED', 400, false],
    ['UNAUTHENTICATED', 401, false],
    ['FORBIDDEN', 403, false],
    ['NOT_FOUND', 404, false],
    ['FENCED_OUT', 409, false],
    ['PAYOUT_NOT_CLAIMABLE', 409, false],
    ['DUPLICATE_SUBMISSION', 409, false],
    ['INSUFFICIENT_FUNDS', 422, false],
    ['IDEMPOTENCY_CONFLICT', 422, false],
    ['RAIL_REJECTED', 422, false],
    ['RAIL_UNAVAILABLE', 503, true],
    ['RAIL_AMBIGUOUS', 409, false],
    ['INTERNAL', 500, false],
  ]
  test.each(pinned)('%s is %i, retry-safe: %j', (code, status, retrySafe) => {
    expect(errorTable[code]).toEqual({ status, retrySafe })
  })

  test('every envelope of the table fits its schema', () => {
    for (const code of Object.keys(errorTable) as ErrorCode[]) {
      expect(errorEnvelope.faults(envelopeOf(new Failure(code, 'why'), call))).toEqual([])
    }
  })
})

describe('from the contract to the wire and back', () => {
  test('a store that cannot decide is STORE_UNAVAILABLE and a ContentionError again', () => {
    expect(failureOf(new ContentionError('no answer')).code).toBe('STORE_UNAVAILABLE')
    expect(roundTrip(new ContentionError('no answer'))).toEqual(new ContentionError('no answer'))
  })

  test('a full queue is CONTENTION_EXCEEDED and keeps its delay', () => {
    const full = new ContentionError('too many wait', { retryAfterMs: 250 })
    expect(failureOf(full).code).toBe('CONTENTION_EXCEEDED')
    expect(roundTrip(full)).toMatchObject({ name: 'ContentionError', retryAfterMs: 250 })
  })

  test('an election is NOT_LEADER and a NotLeaderError again', () => {
    expect(roundTrip(new NotLeaderError('electing'))).toBeInstanceOf(NotLeaderError)
  })

  test.each(['unknown', 'expired'] as const)('a session that is %s stays so', (state) => {
    expect(roundTrip(new SessionDeadError(state))).toMatchObject({
      name: 'SessionDeadError',
      state,
    })
  })

  test('FENCED_OUT carries both tokens exactly', () => {
    const error = new FencedOutError('k', 9007199254740993n, 9007199254740995n)
    const failure = fencedOutFailure(error, { type: 'lock', id: 'k', ownerId: 'w' })
    expect(failure.details).toEqual({
      presentedToken: '9007199254740993',
      highestToken: '9007199254740995',
      resourceType: 'lock',
      resourceId: 'k',
      ownerId: 'w',
    })
    expect(errorOf(envelopeOf(failure, call))).toEqual(error)
  })

  test('a validation becomes a RangeError with the server’s words', () => {
    const fields = [{ field: 'ttlMillis', message: 'must be at least 1, got 0' }]
    const failure = new Failure('VALIDATION_FAILED', 'not valid', { details: { fields } })
    expect(errorOf(envelopeOf(failure, call))).toEqual(
      new RangeError('not valid: ttlMillis must be at least 1, got 0'),
    )
  })

  test('a bug tells the caller nothing but a trace id', () => {
    const envelope = envelopeOf(failureOf(new Error('password=hunter2')), call)
    expect(envelope).toMatchObject({ code: 'INTERNAL', retrySafe: false, traceId: call.traceId })
    expect(JSON.stringify(envelope)).not.toContain('hunter2')
  })

  test('an answer of no type of the contract is a RemoteError, terminal, with code and trace', () => {
    const error = errorOf(envelopeOf(new Failure('FORBIDDEN', 'no'), call))
    expect(error).toBeInstanceOf(RemoteError)
    expect(error).toBeInstanceOf(TerminalLockError)
    expect(error).toMatchObject({ code: 'FORBIDDEN', status: 403, traceId: call.traceId })
  })

  test('the verdict on the wire and the type agree wherever there is a type', () => {
    for (const code of Object.keys(errorTable) as ErrorCode[]) {
      const error = errorOf(envelopeOf(new Failure(code, 'why'), call))
      if (error instanceof RetryableLockError) expect(errorTable[code].retrySafe).not.toBe(false)
    }
  })

  test('a retry is safe after STORE_UNAVAILABLE only where the operation can be repeated', () => {
    const failure = new Failure('STORE_UNAVAILABLE', 'no answer')
    expect(envelopeOf(failure, { ...call, repeatable: true }).retrySafe).toBe(true)
    expect(envelopeOf(failure, { ...call, repeatable: false }).retrySafe).toBe(false)
  })
})
