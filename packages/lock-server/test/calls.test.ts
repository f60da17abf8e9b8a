import { MAX_FENCING_TOKEN } from '@dlock/lock-api'
import { describe, expect, test } from 'vitest'
import { callers, openSession } from './callers.ts'
import { eventually, serve } from './serve.ts'

describe.each(Object.entries(callers))('over %s', (_, callerFor) => {
  test('L1 opens a session with the lease asked for, or 15 s', async () => {
    const caller = await callerFor(await serve())
    const asked = await caller.call('openSession', { ownerId: 'worker', ttlMillis: 60_000 })
    expect(asked).toMatchObject({ ownerId: 'worker', ttlMillis: 60_000 })
    const usual = await caller.call('openSession', { ownerId: 'worker' })
    expect(usual.ttlMillis).toBe(15_000)
    expect(usual.sessionId).not.toBe(asked.sessionId)
  })

  test('L1 opens no session in another’s name', async () => {
    const caller = await callerFor(await serve())
    const refusal = await caller.refusal('openSession', { ownerId: 'somebody' }, 'else')
    expect(refusal.code).toBe('FORBIDDEN')
  })

  test('L2 keeps the session, renews what is held and names what is lost', async () => {
    const caller = await callerFor(await serve())
    const sessionId = await openSession(caller)
    const { fencingToken } = await caller.call('acquire', { key: 'mine', sessionId })
    const beat = await caller.call('heartbeat', {
      sessionId,
      ttlMillis: 20_000,
      renew: [
        { key: 'mine', fencingToken, ttlMillis: 40_000 },
        { key: 'gone', fencingToken: '999' },
      ],
    })
    expect(beat).toMatchObject({
      sessionId,
      ttlMillis: 20_000,
      heldLockCount: 1,
      renewed: [{ key: 'mine', fencingToken, ttlMillis: 40_000 }],
      lost: [{ key: 'gone', fencingToken: '999' }],
    })
  })

  test('L2 without a lease keeps the one the session was opened with', async () => {
    const caller = await callerFor(await serve())
    const { sessionId } = await caller.call('openSession', { ownerId: 'worker', ttlMillis: 45_000 })
    expect((await caller.call('heartbeat', { sessionId })).ttlMillis).toBe(45_000)
    await caller.call('heartbeat', { sessionId, ttlMillis: 50_000 })
    expect((await caller.call('heartbeat', { sessionId })).ttlMillis).toBe(50_000)
  })

  test('L2 with one lease too long is refused as a whole, and nothing is prolonged', async () => {
    const served = await serve()
    const caller = await callerFor(served)
    const { sessionId } = await caller.call('openSession', { ownerId: 'worker', ttlMillis: 2_000 })
    const { fencingToken } = await caller.call('acquire', { key: 'k', sessionId })
    const renew = [
      { key: 'k', fencingToken },
      { key: 'l', fencingToken, ttlMillis: 3_600_001 },
    ]
    expect(
      await caller.refusal('heartbeat', { sessionId, ttlMillis: 60_000, renew }),
    ).toMatchObject({
      code: 'VALIDATION_FAILED',
      details: { fields: [{ field: 'renew.1.ttlMillis' }] },
    })
    const state = await served.engine.describeSession(sessionId)
    expect(state).toMatchObject({ state: 'live' })
    expect(state.state === 'live' && state.remainingMs).toBeLessThanOrEqual(2_000)
  })

  test('L3 closes the session and every lock on it, and may be repeated', async () => {
    const caller = await callerFor(await serve())
    const sessionId = await openSession(caller)
    await caller.call('acquire', { key: 'a', sessionId })
    await caller.call('closeSession', { sessionId })
    expect(await caller.call('inspect', { key: 'a' })).toEqual({ held: false, key: 'a' })
    await caller.call('closeSession', { sessionId })
    expect((await caller.refusal('acquire', { key: 'a', sessionId })).code).toBe('SESSION_UNKNOWN')
    expect((await caller.refusal('heartbeat', { sessionId })).code).toBe('SESSION_UNKNOWN')
  })

  test('L4 grants, says who holds, and gives the same session its own grant again', async () => {
    const caller = await callerFor(await serve())
    const sessionId = await openSession(caller)
    const grant = await caller.call('acquire', { key: 'k', sessionId, ttlMillis: 1_500 })
    expect(grant).toMatchObject({ key: 'k', ownerId: 'worker', sessionId, ttlMillis: 1_500 })
    expect(Date.parse(grant.expiresAt) - Date.parse(grant.acquiredAt)).toBe(1_500)
    const again = await caller.call('acquire', { key: 'k', sessionId, ttlMillis: 1_500 })
    expect(again.fencingToken).toBe(grant.fencingToken)

    const other = await openSession(caller, 'other')
    const refusal = await caller.refusal('acquire', { key: 'k', sessionId: other }, 'other')
    expect(refusal).toMatchObject({
      code: 'LOCK_CONTENDED',
      retrySafe: true,
      details: { holder: 'worker' },
    })
    expect(refusal.details).toHaveProperty('expiresAt')
  })

  test('L4 waits for the release, and its token is higher', async () => {
    const caller = await callerFor(await serve())
    const first = await openSession(caller)
    const second = await openSession(caller)
    const grant = await caller.call('acquire', { key: 'k', sessionId: first })
    const waiting = caller.call('acquire', { key: 'k', sessionId: second, waitMillis: 30_000 })
    await caller.call('release', { key: 'k', fencingToken: grant.fencingToken, sessionId: first })
    expect(BigInt((await waiting).fencingToken)).toBeGreaterThan(BigInt(grant.fencingToken))
  })

  test('L4 says when to come back when too many wait', async () => {
    const served = await serve({ maxWaiters: 1 })
    const caller = await callerFor(served)
    const [a, b, c] = [
      await openSession(caller),
      await openSession(caller),
      await openSession(caller),
    ]
    const grant = await caller.call('acquire', { key: 'k', sessionId: a })
    const waiting = caller.call('acquire', { key: 'k', sessionId: b, waitMillis: 30_000 })
    await eventually(() => served.engine.gauges().waiters).toBe(1)
    const refusal = await caller.refusal('acquire', { key: 'k', sessionId: c, waitMillis: 30_000 })
    expect(refusal).toMatchObject({ code: 'CONTENTION_EXCEEDED', retrySafe: true })
    expect(refusal.retryAfterMillis).toBeGreaterThan(0)
    await caller.call('release', { key: 'k', fencingToken: grant.fencingToken })
    await waiting
  })

  test('L5 renews with the same token, and says LOCK_LOST for any other', async () => {
    const caller = await callerFor(await serve())
    const sessionId = await openSession(caller)
    const { fencingToken } = await caller.call('acquire', { key: 'k', sessionId })
    const renewed = await caller.call('renew', {
      key: 'k',
      sessionId,
      fencingToken,
      ttlMillis: 999,
    })
    expect(renewed).toMatchObject({ key: 'k', fencingToken, ttlMillis: 999 })
    const stale = { key: 'k', sessionId, fencingToken: String(MAX_FENCING_TOKEN) }
    expect(await caller.refusal('renew', stale)).toMatchObject({
      code: 'LOCK_LOST',
      retrySafe: false,
    })
  })

  test('L6 releases exactly one grant, once (FR-05)', async () => {
    const caller = await callerFor(await serve())
    const sessionId = await openSession(caller)
    const { fencingToken } = await caller.call('acquire', { key: 'k', sessionId })
    const wrong = String(BigInt(fencingToken) + 1n)
    expect((await caller.refusal('release', { key: 'k', fencingToken: wrong })).code).toBe(
      'LOCK_LOST',
    )
    await caller.call('release', { key: 'k', fencingToken, sessionId })
    expect((await caller.refusal('release', { key: 'k', fencingToken })).code).toBe('LOCK_LOST')
  })

  test('L7 shows what is held, and what is not', async () => {
    const caller = await callerFor(await serve())
    const sessionId = await openSession(caller)
    expect(await caller.call('inspect', { key: 'k' })).toEqual({ held: false, key: 'k' })
    const { fencingToken } = await caller.call('acquire', { key: 'k', sessionId })
    expect(await caller.call('inspect', { key: 'k' })).toMatchObject({
      held: true,
      ownerId: 'worker',
      fencingToken,
      waiterCount: 0,
    })
  })

  test('L8 revokes, names the floor, and refuses a stale expectation', async () => {
    const caller = await callerFor(await serve())
    const sessionId = await openSession(caller)
    const by = { operator: 'ops', reason: 'holder is stuck' }
    expect((await caller.refusal('revoke', { key: 'k', ...by })).code).toBe('NOT_FOUND')

    const { fencingToken } = await caller.call('acquire', { key: 'k', sessionId })
    const expectedToken = String(BigInt(fencingToken) + 7n)
    expect(await caller.refusal('revoke', { key: 'k', ...by, expectedToken })).toMatchObject({
      code: 'FENCED_OUT',
      retrySafe: false,
      details: {
        presentedToken: expectedToken,
        highestToken: fencingToken,
        resourceType: 'lock',
        resourceId: 'k',
        ownerId: 'worker',
      },
    })

    const revoked = await caller.call('revoke', { key: 'k', ...by, expectedToken: fencingToken })
    expect(revoked.revokedToken).toBe(fencingToken)
    expect((await caller.refusal('renew', { key: 'k', sessionId, fencingToken })).code).toBe(
      'LOCK_LOST',
    )
    const next = await caller.call('acquire', { key: 'k', sessionId })
    expect(BigInt(next.fencingToken)).toBeGreaterThan(BigInt(revoked.newTokenFloor))
  })

  test.each([0, 3_600_001, 31_536_000_000])(
    'P-14: a lease of %i ms is refused',
    async (ttlMillis) => {
      const caller = await callerFor(await serve())
      const sessionId = await openSession(caller)
      const refusal = await caller.refusal('acquire', { key: 'k', sessionId, ttlMillis })
      expect(refusal).toMatchObject({
        code: 'VALIDATION_FAILED',
        details: { fields: [{ field: 'ttlMillis' }] },
      })
    },
  )

  test('no call acts for a session of another owner', async () => {
    const caller = await callerFor(await serve())
    const sessionId = await openSession(caller, 'alice')
    const { fencingToken } = await caller.call('acquire', { key: 'k', sessionId }, 'alice')
    const attempts = {
      heartbeat: { sessionId },
      closeSession: { sessionId },
      acquire: { key: 'other', sessionId },
      renew: { key: 'k', sessionId, fencingToken },
      release: { key: 'k', fencingToken },
    } as const
    for (const [name, input] of Object.entries(attempts)) {
      const refusal = await caller.refusal(name as keyof typeof attempts, input, 'mallory')
      expect([name, refusal.code]).toEqual([name, 'FORBIDDEN'])
    }
    const withSession = { key: 'k', fencingToken, sessionId }
    expect((await caller.refusal('release', withSession, 'mallory')).code).toBe('FORBIDDEN')
    expect(await caller.call('inspect', { key: 'k' })).toMatchObject({ held: true, fencingToken })
  })

  test('every write names its caller, and a read need not', async () => {
    const caller = await callerFor(await serve())
    for (const ownerId of ['', ' ', 'x'.repeat(65)]) {
      const refusal = await caller.refusal('openSession', { ownerId: 'worker' }, ownerId)
      expect(refusal.code).toBe('VALIDATION_FAILED')
      expect(refusal.details?.['fields']).toContainEqual(
        expect.objectContaining({ field: 'X-Owner-Id' }),
      )
    }
  })

  test.each(['0', '01', '+1', '-1', '1.0', '1e3', '9223372036854775808', 'one'])(
    'P-25: %s is INVALID_TOKEN wherever a token goes, never coerced',
    async (token) => {
      const caller = await callerFor(await serve())
      const sessionId = await openSession(caller)
      const by = { operator: 'ops', reason: 'holder is stuck' }
      const refusals = [
        await caller.refusal('renew', { key: 'k', sessionId, fencingToken: token }),
        await caller.refusal('release', { key: 'k', fencingToken: token }),
        await caller.refusal('revoke', { key: 'k', ...by, expectedToken: token }),
        await caller.refusal('heartbeat', {
          sessionId,
          renew: [{ key: 'k', fencingToken: token }],
        }),
      ]
      expect(refusals.map(({ code }) => code)).toEqual(Array(4).fill('INVALID_TOKEN'))
    },
  )
})
