import { LockLostError, SessionDeadError } from '@dlock/lock-api'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { LockClientSession } from '../src/index.ts'
import { connect, type Road, roads, type Service, startService } from './roads.ts'
import { taken } from './stage.ts'

/** What an application sees is the same on every road; only where it leads through differs. */
describe.each(roads)('over %s', { timeout: 30_000 }, (road: Road) => {
  async function scene(): Promise<{ service: Service; session: LockClientSession }> {
    const service = await startService()
    return { service, session: await connect(road, service).openSession('worker') }
  }

  test('acquire, check, renew and release; the next token is higher', async () => {
    const { session } = await scene()
    const first = await taken(session, 'k', { ttlMs: 15_000 })
    session.checkStillHeld(first, { needMs: 8_000 })
    await session.confirmStillHeld(first)
    const renewed = await session.renew(first)
    expect(renewed.fencingToken).toBe(first.fencingToken)
    expect(renewed.clientDeadlineNanos).toBeGreaterThan(first.clientDeadlineNanos)
    expect(await session.release(first)).toBe(true)
    const second = await taken(session, 'k')
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken)
  })

  test('what another holds is undefined; a wait for it ends with its release', async () => {
    const { service, session } = await scene()
    const other = await connect(road, service).openSession('other')
    const theirs = await taken(other, 'k')
    expect(await session.acquire('k')).toBeUndefined()
    expect(await session.acquire('k', { maxWaitMs: 20 })).toBeUndefined()
    const waiting = session.acquire('k', { maxWaitMs: 20_000 })
    await waiters(service, 'k')
    await other.release(theirs)
    expect((await waiting)?.fencingToken).toBeGreaterThan(theirs.fencingToken)
  })

  test('a wait that is given up rejects with the reason and leaves nothing behind', async () => {
    const { service, session } = await scene()
    const other = await connect(road, service).openSession('other')
    const theirs = await taken(other, 'k')
    const controller = new AbortController()
    const { signal } = controller
    const waiting = session.acquire('k', { maxWaitMs: 20_000, signal })
    await waiters(service, 'k')
    controller.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    await other.release(theirs)
    expect(await service.engine.inspect('k')).toBeUndefined()
  })

  test('using and hold release, and hold and using refuse', async () => {
    const { service, session } = await scene()
    const other = await connect(road, service).openSession('other')
    const used = await session.using('k', {}, async ({ fencingToken }) => {
      await expect(other.hold('k')).rejects.toThrow('another holds it')
      expect(await other.using('k', {}, () => 1)).toEqual({ granted: false })
      return fencingToken
    })
    expect(used.granted && used.value > 0n).toBe(true)
    {
      await using held = await other.hold('k')
      other.checkStillHeld(held.lock)
    }
    expect(await service.engine.inspect('k')).toBeUndefined()
  })

  test('the heartbeat prolongs what is held, and finds out what was revoked', async () => {
    const service = await startService()
    const client = connect(road, service, { sessionTtlMs: 5_000 })
    const session = await client.openSession('worker')
    const kept = await taken(session, 'kept')
    const revoked = await taken(session, 'revoked')
    const grantedUntil = (await service.engine.inspect('kept'))?.expiresAt
    await client.forceRevoke('revoked', 'operator', 'for the test')
    const lost = session.lostSignal(revoked)
    await new Promise<void>((resolve) => lost.addEventListener('abort', () => resolve()))
    expect((lost.reason as LockLostError).message).toContain('the service says')
    session.checkStillHeld(kept)
    const now = await service.engine.inspect('kept')
    expect(now?.fencingToken).toBe(kept.fencingToken)
    expect(now?.expiresAt.getTime()).toBeGreaterThan(grantedUntil?.getTime() ?? 0)
  })

  test('a revocation can be made on condition of the token', async () => {
    const { service, session } = await scene()
    const client = connect(road, service)
    const reason = 'for the test'
    expect(await client.forceRevoke('k', 'operator', reason)).toEqual({ kind: 'not-held' })
    const handle = await taken(session, 'k')
    const wrong = handle.fencingToken + 1n
    expect(await client.forceRevoke('k', 'operator', reason, wrong)).toEqual({
      kind: 'stale',
      currentToken: handle.fencingToken,
    })
    const outcome = await client.forceRevoke('k', 'operator', reason, handle.fencingToken)
    expect(outcome).toMatchObject({ kind: 'revoked', previousToken: handle.fencingToken })
    expect(await session.release(handle)).toBe(false)
  })

  test('inspect shows who holds a key, and undefined when nobody does', async () => {
    const { service, session } = await scene()
    const client = connect(road, service)
    expect(await client.inspect('k')).toBeUndefined()
    const handle = await taken(session, 'k')
    expect(await client.inspect('k')).toMatchObject({
      key: 'k',
      ownerId: 'worker',
      fencingToken: handle.fencingToken,
    })
  })

  test('a session that died at the service loses its locks, and acquires no more', async () => {
    const { service, session } = await scene()
    const handle = await taken(session, 'k')
    await service.engine.closeSession(handle.sessionId)
    await expect(session.acquire('other')).rejects.toThrow(SessionDeadError)
    expect(() => session.checkStillHeld(handle)).toThrow(LockLostError)
  })

  test('closing the client releases everything', async () => {
    const service = await startService()
    const client = connect(road, service)
    const one = await client.openSession('one')
    const two = await client.openSession('two')
    await taken(one, 'a')
    await taken(two, 'b')
    await client.close()
    expect(await service.engine.inspect('a')).toBeUndefined()
    expect(await service.engine.inspect('b')).toBeUndefined()
  })

  test('P-02: odd keys are independent, and odd owners are themselves', async () => {
    const { service } = await scene()
    const session = await connect(road, service).openSession('бригада №7 ✓')
    const keys = ['job', 'job2', 'job/1', 'job/', 'jo', 'job%2F1', '.', '..', 'ключ', 'a b?c#d&e=f']
    keys.push('é'.repeat(256), '𝔻lock', '"\\')
    const handles = await Promise.all(keys.map((key) => taken(session, key)))
    expect(new Set(handles.map(({ fencingToken }) => fencingToken)).size).toBe(keys.length)
    for (const key of keys) {
      expect(await service.engine.inspect(key)).toMatchObject({ key, ownerId: 'бригада №7 ✓' })
    }
    const released = await Promise.all(handles.map((handle) => session.release(handle)))
    expect(released.every(Boolean)).toBe(true)
  })

  test('P-25: a token above 2^53 comes through unharmed', async () => {
    const { service, session } = await scene()
    await service.engine.tokens?.advanceTokens(2n ** 60n)
    const handle = await taken(session, 'k')
    expect(handle.fencingToken).toBe(2n ** 60n + 1n)
    await session.confirmStillHeld(handle)
    expect(await session.release(handle)).toBe(true)
  })

  test("P-14: what the service's limits forbid is a RangeError that says so", async () => {
    const { session } = await scene()
    await expect(session.acquire('k', { ttlMs: 3_600_001 })).rejects.toThrow(RangeError)
    await expect(session.acquire('k', { ttlMs: 3_600_001 })).rejects.toThrow(/3600000/)
  })

  test('three hundred tasks on a hundred keys: each key one holder at a time, tokens rising', async () => {
    const { service, session } = await scene()
    const other = await connect(road, service).openSession('other')
    const last = new Map<string, bigint>()
    const inside = new Set<string>()
    const task = async (i: number): Promise<void> => {
      const key = `k${i % 100}`
      const who = i % 2 === 0 ? session : other
      const result = await who.using(key, { maxWaitMs: 20_000 }, async ({ fencingToken }) => {
        expect(inside.has(key)).toBe(false)
        inside.add(key)
        expect(fencingToken).toBeGreaterThan(last.get(key) ?? 0n)
        last.set(key, fencingToken)
        await new Promise((resolve) => setImmediate(resolve))
        inside.delete(key)
      })
      expect(result.granted).toBe(true)
    }
    await Promise.all(Array.from({ length: 300 }, (_, i) => task(i)))
  })
})

/** Resolves when the engine knows of a waiter for `key`. */
async function waiters(service: Service, key: string): Promise<void> {
  let stop = false
  onTestFinished(() => {
    stop = true
  })
  while (!stop) {
    if (((await service.engine.inspect(key))?.waiterCount ?? 0) > 0) return
    await new Promise((resolve) => setImmediate(resolve))
  }
}
