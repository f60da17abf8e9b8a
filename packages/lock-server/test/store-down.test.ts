import { ContentionError, NotLeaderError } from '@dlock/lock-api'
import { describe, expect, test } from 'vitest'
import { callers, openSession } from './callers.ts'
import { faultyStore } from './faulty-store.ts'
import { serve } from './serve.ts'

describe.each(Object.entries(callers))('over %s', (_, callerFor) => {
  test('P-15: a store that is down is 503 STORE_UNAVAILABLE, never 409 "held"', async () => {
    const { store, failing } = faultyStore()
    const caller = await callerFor(await serve({ store }))
    const sessionId = await openSession(caller)
    failing.set('*', new ContentionError('the store did not answer'))
    const refusal = await caller.refusal('acquire', { key: 'k', sessionId })
    expect(refusal).toMatchObject({ code: 'STORE_UNAVAILABLE', retrySafe: true })
  })

  test('an election is NOT_LEADER', async () => {
    const { store, failing } = faultyStore()
    const caller = await callerFor(await serve({ store }))
    const sessionId = await openSession(caller)
    failing.set('*', new NotLeaderError('electing'))
    expect((await caller.refusal('acquire', { key: 'k', sessionId })).code).toBe('NOT_LEADER')
  })

  test('a renewal or a release without an answer is not LOCK_LOST', async () => {
    const { store, failing } = faultyStore()
    const caller = await callerFor(await serve({ store }))
    const sessionId = await openSession(caller)
    const { fencingToken } = await caller.call('acquire', { key: 'k', sessionId })
    failing.set('*', new ContentionError('the store did not answer'))
    const input = { key: 'k', sessionId, fencingToken }
    expect((await caller.refusal('renew', input)).code).toBe('STORE_UNAVAILABLE')
    expect((await caller.refusal('release', input)).code).toBe('STORE_UNAVAILABLE')
  })

  test('repeating is called safe only where the identical request has the effect of one', async () => {
    const { store, failing } = faultyStore()
    const caller = await callerFor(await serve({ store }))
    const sessionId = await openSession(caller)
    failing.set('*', new ContentionError('the store did not answer'))
    const by = { operator: 'ops', reason: 'holder is stuck' }
    expect((await caller.refusal('heartbeat', { sessionId })).retrySafe).toBe(true)
    expect((await caller.refusal('openSession', { ownerId: 'worker' })).retrySafe).toBe(false)
    expect((await caller.refusal('revoke', { key: 'k', ...by })).retrySafe).toBe(false)
  })

  test('P-19: a renewal that fails for a moment is neither renewed nor lost, and the session lives', async () => {
    const { store, failing } = faultyStore()
    const caller = await callerFor(await serve({ store }))
    const sessionId = await openSession(caller)
    const { fencingToken } = await caller.call('acquire', { key: 'k', sessionId })
    const renew = [{ key: 'k', fencingToken }]
    failing.set('extend', new ContentionError('the store did not answer'))
    failing.set('locksOf', new ContentionError('the store did not answer'))
    const beat = await caller.call('heartbeat', { sessionId, renew })
    expect(beat).toMatchObject({ renewed: [], lost: [] })
    expect(beat).not.toHaveProperty('heldLockCount')
    failing.clear()
    expect((await caller.call('heartbeat', { sessionId, renew })).renewed).toHaveLength(1)
  })

  test('a bug is INTERNAL: its words are in the log, under the trace id that the caller gets', async () => {
    const { store, failing } = faultyStore()
    const served = await serve({ store })
    const caller = await callerFor(served)
    const sessionId = await openSession(caller)
    failing.set('tryInsert', new TypeError('password=hunter2'))
    const refusal = await caller.refusal('acquire', { key: 'k', sessionId })
    expect(refusal).toMatchObject({ code: 'INTERNAL', retrySafe: false })
    expect(JSON.stringify(refusal)).not.toContain('hunter2')
    const line = served.lines.find(({ event }) => event === 'internal_error')
    expect(line).toMatchObject({ level: 'error', traceId: refusal.traceId, operation: 'acquire' })
    expect(line?.['error']).toContain('hunter2')
  })

  test('a holder that cannot be named is no reason to say anything but held', async () => {
    const { store, failing } = faultyStore()
    const caller = await callerFor(await serve({ store }))
    const [holder, other] = [await openSession(caller), await openSession(caller)]
    await caller.call('acquire', { key: 'k', sessionId: holder })
    failing.set('read', new ContentionError('the store did not answer'))
    const refusal = await caller.refusal('acquire', { key: 'k', sessionId: other })
    expect(refusal.code).toBe('LOCK_CONTENDED')
    expect(refusal).not.toHaveProperty('details')
  })
})
