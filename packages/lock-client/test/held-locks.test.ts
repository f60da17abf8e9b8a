import { ContentionError, LockLostError, NotLeaderError, SessionDeadError } from '@dlock/lock-api'
import { describe, expect, test } from 'vitest'
import { LeaseTooShortError } from '../src/index.ts'
import { outcomeOf, Stage, silence, taken, unreachable } from './stage.ts'

const LONG = { sessionTtlMs: 60_000 } as const

describe('the heartbeat', () => {
  test('is one per period, whatever the number of locks, and keeps them all', async () => {
    const stage = new Stage({ client: { sessionTtlMs: 15_000 } })
    const session = await stage.client.openSession('worker')
    const handles = await Promise.all(
      Array.from({ length: 50 }, (_, i) => taken(session, `k${i}`, { ttlMs: 30_000 })),
    )
    await stage.clock.advance(35_000)
    // A third of 15 000 × 0.7.
    expect(stage.count('heartbeat')).toBe(10)
    expect(stage.count('renew')).toBe(500)
    for (const handle of handles) session.checkStillHeld(handle)
    expect(stage.errors).toEqual([])
  })

  test('comes sooner when a shorter lock arrives, and later again when it is gone', async () => {
    const stage = new Stage({ client: LONG })
    const session = await stage.client.openSession('worker')
    await taken(session, 'long', { ttlMs: 60_000 })
    await stage.clock.advance(5_000)
    expect(stage.count('heartbeat')).toBe(0)
    const short = await taken(session, 'short', { ttlMs: 1_000 })
    await stage.clock.advance(7_000)
    session.checkStillHeld(short)
    expect(stage.count('heartbeat')).toBe(30)
    await session.release(short)
    await stage.clock.advance(14_000)
    expect(stage.count('heartbeat')).toBe(31)
  })

  test('P-19: one that fails loses nothing: same token, and the lock is kept', async () => {
    const stage = new Stage({ client: { sessionTtlMs: 15_000 } })
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k')
    stage.service.next('heartbeat', unreachable)
    stage.service.next('renew', () => Promise.reject(new NotLeaderError('electing')))
    await stage.clock.advance(60_000)
    session.checkStillHeld(handle)
    expect(await stage.holder('k')).toBe(handle.fencingToken)
    expect(stage.errors).toEqual([])
  })

  test('tries again twice within a third of the session, and then reports', async () => {
    const stage = new Stage({ client: { sessionTtlMs: 15_000 } })
    await stage.client.openSession('worker')
    stage.down('heartbeat')
    await stage.clock.advance(5_000)
    expect(stage.count('heartbeat')).toBe(3)
    expect(stage.errors).toEqual(['heartbeat: unreachable'])
  })

  test('that gets no answer does not hold up the next one', async () => {
    const stage = new Stage({ client: { sessionTtlMs: 1_000 } })
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k')
    stage.service.next('heartbeat', silence)
    await stage.clock.advance(3_000)
    session.checkStillHeld(handle)
  })

  test('a failed renewal never extends: the deadline stands where it was', async () => {
    const stage = new Stage({ client: LONG })
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k', { ttlMs: 10_000 })
    stage.down('renew')
    await stage.clock.advance(6_999)
    session.checkStillHeld(handle)
    await stage.clock.advance(1)
    expect(() => session.checkStillHeld(handle)).toThrow(LockLostError)
    expect(stage.lostSessions).toEqual([])
  })

  test('an answer counts from when its request left, however late it comes', async () => {
    const stage = new Stage({ client: LONG })
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k', { ttlMs: 3_000 })
    // Due after 700 ms, on its way for 1 000, the last that gets through.
    stage.service.next('renew', stage.answeredAfter(1_000))
    stage.down('renew')
    await stage.clock.advance(700 + 2_100 - 1)
    session.checkStillHeld(handle)
    await stage.clock.advance(1)
    expect(() => session.checkStillHeld(handle)).toThrow(LockLostError)
  })
})

describe('a lock is lost', () => {
  test('FR-12: as soon as its deadline passes', async () => {
    const stage = new Stage({ client: LONG })
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k', { ttlMs: 10_000 })
    const lost = session.lostSignal(handle)
    stage.down('renew')
    await stage.clock.advance(6_999)
    expect(lost.aborted).toBe(false)
    await stage.clock.advance(1)
    expect(lost.reason).toBeInstanceOf(LockLostError)
  })

  test("when its session's lease is over, though its own is not", async () => {
    const stage = new Stage({ client: { sessionTtlMs: 10_000 } })
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k', { ttlMs: 3_600_000 })
    stage.down('heartbeat')
    await stage.clock.advance(6_999)
    session.checkStillHeld(handle)
    await stage.clock.advance(1)
    expect(() => session.checkStillHeld(handle)).toThrow(LockLostError)
    expect(stage.lostSessions).toEqual(['worker'])
    await expect(session.acquire('k')).rejects.toThrow(SessionDeadError)
  })

  test('when the service says so, at once, and the session lives on', async () => {
    const stage = new Stage({ client: { sessionTtlMs: 15_000 } })
    const session = await stage.client.openSession('worker')
    const gone = await taken(session, 'gone')
    const kept = await taken(session, 'kept')
    await stage.store.revoke('gone', 'operator', 'for the test')
    await stage.clock.advance(3_500)
    expect(() => session.checkStillHeld(gone)).toThrow('the service says')
    session.checkStillHeld(kept)
    expect(stage.lostSessions).toEqual([])
  })

  test('with every other lock of the session when the service says that it is dead', async () => {
    const stage = new Stage({ client: { sessionTtlMs: 15_000 } })
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k')
    await stage.store.closeSession(handle.sessionId)
    await stage.clock.advance(3_500)
    expect(() => session.checkStillHeld(handle)).toThrow(LockLostError)
    expect(stage.lostSessions).toEqual(['worker'])
    await session.close()
    expect(stage.count('closeSession')).toBe(0)
  })

  test('P-21: when it was held for its maximum, though its heartbeat goes on', async () => {
    const stage = new Stage({ client: LONG })
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k', { ttlMs: 5_000, maxHoldMs: 20_000 })
    await stage.clock.advance(19_999)
    session.checkStillHeld(handle)
    await stage.clock.advance(1)
    expect(() => session.checkStillHeld(handle)).toThrow('maxHoldMs')
    // Renewed no more, it ends by its own lease.
    await stage.clock.advance(5_000)
    expect(await stage.holder('k')).toBeUndefined()
  })

  test('for good: neither a late answer nor anything else brings it back', async () => {
    const stage = new Stage({ client: LONG })
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k', { ttlMs: 1_000 })
    const renewing = outcomeOf(
      (stage.service.next('renew', async (real) => {
        await stage.after(800)
        return real()
      }),
      session.renew(handle)),
    )
    stage.down('renew')
    await stage.clock.advance(800)
    expect(renewing.error).toBeInstanceOf(LockLostError)
    expect(await stage.holder('k')).toBe(handle.fencingToken)
    expect(() => session.checkStillHeld(handle)).toThrow(LockLostError)
  })

  test('every later call with its handle throws, without a round trip', async () => {
    const stage = new Stage({ client: LONG })
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k', { ttlMs: 1_000 })
    stage.down('renew')
    await stage.clock.advance(700)
    const before = stage.service.calls.length
    expect(() => session.checkStillHeld(handle)).toThrow(LockLostError)
    await expect(session.confirmStillHeld(handle)).rejects.toThrow(LockLostError)
    await expect(session.renew(handle)).rejects.toThrow(LockLostError)
    await expect(session.release(handle)).rejects.toThrow(LockLostError)
    expect(session.lostSignal(handle).aborted).toBe(true)
    expect(stage.service.calls.length).toBe(before)
  })

  test('P-12: the event loop was blocked for twice the lease: a check throws before any await', async () => {
    const stage = new Stage({ client: { sessionTtlMs: 10_000 } })
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k', { ttlMs: 10_000 })
    const heard: string[] = []
    session.onLockLost(({ key }) => heard.push(key))
    const lost = session.lostSignal(handle)
    // As when nothing else gets to run: time passes, timers do not.
    stage.clock.suspend(20_000)
    expect(() => session.checkStillHeld(handle)).toThrow(LockLostError)
    expect({ heard, aborted: lost.aborted }).toEqual({ heard: [], aborted: false })
    await Promise.resolve()
    expect({ heard, aborted: lost.aborted }).toEqual({ heard: ['k'], aborted: true })
  })

  test('decision 10: the machine slept past the deadline: the next timer signals the loss', async () => {
    const stage = new Stage({ client: { sessionTtlMs: 15_000 } })
    const session = await stage.client.openSession('worker')
    const lost = session.lostSignal(await taken(session, 'k'))
    stage.clock.suspend(60_000)
    await stage.clock.advance(3_500)
    expect(lost.aborted).toBe(true)
    expect(stage.count('heartbeat')).toBe(0)
  })

  test.each([3_600_000, -3_600_000])(
    'P-13: a wall clock that jumps by %d ms changes neither lease nor loss',
    async (jumpMs) => {
      const stage = new Stage({ client: LONG })
      const session = await stage.client.openSession('worker')
      const handle = await taken(session, 'k', { ttlMs: 10_000 })
      stage.clock.jumpWall(jumpMs)
      await stage.clock.advance(3_000)
      session.checkStillHeld(handle)
      stage.down('renew')
      await stage.clock.advance(2_333 + 6_999 - 3_000)
      session.checkStillHeld(handle)
      await stage.clock.advance(2)
      expect(() => session.checkStillHeld(handle)).toThrow(LockLostError)
    },
  )
})

describe('listeners', () => {
  test('run once each for each lost lock, and a throwing one harms nobody', async () => {
    const stage = new Stage({ client: { sessionTtlMs: 10_000 } })
    const session = await stage.client.openSession('worker')
    const heard: string[] = []
    session.onLockLost(() => {
      throw new Error('listener')
    })
    session.onLockLost(async () => {
      throw new Error('async listener')
    })
    const stop = session.onLockLost(() => heard.push('stopped'))
    session.onLockLost((handle, error) => heard.push(`${handle.key} ${error.name}`))
    stop()
    await taken(session, 'a')
    await taken(session, 'b')
    stage.down('heartbeat')
    await stage.clock.advance(60_000)
    expect(heard).toEqual(['a LockLostError', 'b LockLostError'])
    expect(stage.errors.filter((error) => error === 'listener: listener')).toHaveLength(2)
    expect(stage.errors.filter((error) => error === 'listener: async listener')).toHaveLength(2)
  })

  test('added after a loss run at once, until the holder has let go', async () => {
    const stage = new Stage({ client: LONG })
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k', { ttlMs: 1_000 })
    stage.down('renew')
    await stage.clock.advance(700)
    const heard: string[] = []
    session.onLockLost(({ key }) => heard.push(`late ${key}`))
    expect(heard).toEqual(['late k'])
    await session.release(handle).catch(() => {})
    session.onLockLost(({ key }) => heard.push(`too late ${key}`))
    expect(heard).toEqual(['late k'])
  })

  test('added between the loss and its signal run once', async () => {
    const stage = new Stage({ client: LONG })
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k', { ttlMs: 1_000 })
    stage.clock.suspend(2_000)
    expect(() => session.checkStillHeld(handle)).toThrow(LockLostError)
    let calls = 0
    session.onLockLost(() => calls++)
    await stage.clock.advance(0)
    expect(calls).toBe(1)
  })

  test('P-03: a normal release is not a loss, in 1 000 cycles with heartbeats between', async () => {
    const stage = new Stage({ client: { sessionTtlMs: 1_000 } })
    const session = await stage.client.openSession('worker')
    let losses = 0
    session.onLockLost(() => losses++)
    // Beats and their answers overlap acquires and releases in every way.
    stage.service.always('renew', stage.answeredAfter(3))
    for (let i = 0; i < 1_000; i++) {
      const handle = await taken(session, `k${i % 3}`, { ttlMs: 20 })
      await stage.clock.advance(i % 7)
      const releasing = session.release(handle)
      await stage.clock.advance(i % 5)
      await releasing
    }
    await stage.clock.advance(1_000)
    expect(losses).toBe(0)
    expect(stage.count('heartbeat')).toBeGreaterThan(500)
  })
})

describe('checkStillHeld', () => {
  test('with needMs: what cannot finish in the lease is not started, and nothing is lost by it', async () => {
    const stage = new Stage({ client: LONG })
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k', { ttlMs: 10_000 })
    session.checkStillHeld(handle, { needMs: 7_000 })
    const check = (): void => session.checkStillHeld(handle, { needMs: 7_001 })
    expect(check).toThrow(LeaseTooShortError)
    expect(check).toThrow('held for 7000 ms more, and 7001 ms are needed')
    session.checkStillHeld(handle)
  })

  test('asks about the lock as it is now: a handle from before a renewal stays good', async () => {
    const stage = new Stage({ client: LONG })
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k', { ttlMs: 10_000 })
    await stage.clock.advance(9_000)
    session.checkStillHeld(handle, { needMs: 2_000 })
    const renewed = await session.renew(handle)
    expect(renewed.fencingToken).toBe(handle.fencingToken)
    expect(renewed.clientDeadlineNanos).toBe(stage.clock.monotonicNanos() + 7_000_000_000n)
    session.checkStillHeld(handle, { needMs: 7_000 })
    session.checkStillHeld(renewed, { needMs: 7_000 })
  })

  test('throws for a lock that was released, and for one of another session', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const other = await stage.client.openSession('worker')
    const handle = await taken(session, 'k')
    expect(() => other.checkStillHeld(handle)).toThrow('this session does not hold it')
    await session.release(handle)
    expect(() => session.checkStillHeld(handle)).toThrow('it was released')
  })

  test.each([-1, Number.NaN, Number.POSITIVE_INFINITY])('refuses needMs %d', async (needMs) => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k')
    expect(() => session.checkStillHeld(handle, { needMs })).toThrow(RangeError)
  })

  test('confirmStillHeld asks the service, and throws what it says', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k')
    await session.confirmStillHeld(handle, { needMs: 1_000 })
    stage.service.next('renew', unreachable, unreachable)
    const confirming = outcomeOf(session.confirmStillHeld(handle))
    await stage.clock.advance(100)
    expect(confirming.error).toBeInstanceOf(ContentionError)
    session.checkStillHeld(handle)
    await stage.store.revoke('k', 'operator', 'for the test')
    await expect(session.confirmStillHeld(handle)).rejects.toThrow(LockLostError)
  })
})
