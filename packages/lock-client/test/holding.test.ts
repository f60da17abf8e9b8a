import { LockEngine } from '@dlock/engine'
import { ContentionError, type LockHandle, LockLostError, SessionDeadError } from '@dlock/lock-api'
import { MemoryStore } from '@dlock/store-memory'
import { systemClock } from '@dlock/system'
import { describe, expect, expectTypeOf, test } from 'vitest'
import {
  LockClient,
  type LockClientSession,
  LockNotGrantedError,
  type UsingResult,
} from '../src/index.ts'
import { outcomeOf, Stage, silence, taken, unreachable } from './stage.ts'

describe('using', () => {
  test('gives what its work gives, and has released by then', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const result = await session.using('k', {}, (lock, lost) => {
      expect(lost.aborted).toBe(false)
      return lock.fencingToken
    })
    expect(result).toEqual({ granted: true, value: 1n })
    expect(await stage.holder('k')).toBeUndefined()
  })

  test('FR-27: does nothing without the lock, and says so', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    await stage.other('k')
    let ran = false
    const result = await session.using('k', {}, () => {
      ran = true
    })
    expect(result).toEqual({ granted: false })
    expect(ran).toBe(false)
  })

  test('FR-27: the compiler sees to it that the refusal is looked at', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const result = await session.using('k', {}, () => 'done')
    expectTypeOf(result).toEqualTypeOf<UsingResult<string>>()
    // @ts-expect-error: there is no value before it is known that the lock was granted
    expectTypeOf(result.value)
    if (result.granted) expectTypeOf(result.value).toEqualTypeOf<string>()
    type Session = LockClientSession
    expectTypeOf<Session['acquire']>().returns.resolves.toEqualTypeOf<LockHandle | undefined>()
    expectTypeOf<Session['checkStillHeld']>().returns.toEqualTypeOf<void>()
  })

  test('P-15: the store is down at acquire: the work never runs, and nobody says "held"', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    stage.down('acquire')
    let ran = false
    const using = outcomeOf(session.using('k', {}, () => (ran = true)))
    await stage.clock.advance(2_500)
    expect(using.error).toBeInstanceOf(ContentionError)
    expect(ran).toBe(false)
    expect(stage.count('acquire')).toBe(6)
  })

  test('P-05: the work throws and the release fails: the work is heard, the release reported', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    stage.down('release')
    const using = session.using('k', {}, () => {
      throw new Error('E')
    })
    await expect(using).rejects.toThrow('E')
    expect(stage.errors).toEqual(['release: unreachable'])
  })

  test('P-05: the release is never answered: the value is given within a bound even so', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    stage.down('heartbeat')
    stage.service.next('release', silence)
    const using = outcomeOf(session.using('k', {}, () => 42))
    await stage.clock.advance(2_499)
    expect(using.settled).toBe(false)
    await stage.clock.advance(1)
    expect(using.value).toEqual({ granted: true, value: 42 })
    expect(stage.errors).toContain('release: no answer in time: the call may have happened')
  })

  test("P-06: the holder's signal fires: the release happens, and not under that signal", async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const controller = new AbortController()
    const { signal } = controller
    const using = session.using('k', { signal }, () => {
      controller.abort(new Error('stop'))
      signal.throwIfAborted()
    })
    await expect(using).rejects.toThrow('stop')
    expect(stage.count('release')).toBe(1)
    expect(await stage.holder('k')).toBeUndefined()
    expect(stage.errors).toEqual([])
  })

  test('P-04: the service goes away and nobody listens: the work ends, using rejects typed', async () => {
    const stage = new Stage({ client: { sessionTtlMs: 10_000 } })
    const session = await stage.client.openSession('worker')
    stage.down('heartbeat', 'renew', 'release', 'closeSession')
    const using = outcomeOf(
      session.using('k', {}, async () => {
        await stage.after(20_000)
        return 'done'
      }),
    )
    await stage.clock.advance(30_000)
    expect(using.error).toBeInstanceOf(LockLostError)
    expect(stage.lostSessions).toEqual(['worker'])
  })

  test('waits for its work to end, even when the lock was lost long before', async () => {
    const stage = new Stage({ client: { sessionTtlMs: 60_000 } })
    const session = await stage.client.openSession('worker')
    stage.down('renew')
    const seen: string[] = []
    const using = session.using('k', { ttlMs: 1_000 }, async (_, lost) => {
      await new Promise<void>((resolve) => lost.addEventListener('abort', () => resolve()))
      seen.push('lost')
      await stage.after(5_000)
      seen.push('stopped')
      throw lost.reason
    })
    const outcome = outcomeOf(using)
    await stage.clock.advance(5_000)
    expect({ seen, settled: outcome.settled }).toEqual({ seen: ['lost'], settled: false })
    await stage.clock.advance(1_000)
    expect(seen).toEqual(['lost', 'stopped'])
    expect(outcome.error).toBeInstanceOf(LockLostError)
  })

  test('a lost lock is not released: what is left of its lease is the time to stop', async () => {
    const stage = new Stage({ client: { sessionTtlMs: 60_000 } })
    const session = await stage.client.openSession('worker')
    stage.down('renew')
    const using = outcomeOf(session.using('k', { ttlMs: 1_000 }, () => stage.after(900)))
    await stage.clock.advance(999)
    expect(using.error).toBeInstanceOf(LockLostError)
    expect(stage.count('release')).toBe(0)
    expect(await stage.holder('k')).toBe(1n)
    await stage.clock.advance(1)
    expect(await stage.holder('k')).toBeUndefined()
  })

  test('its work may release by itself', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const using = session.using('k', {}, (lock) => session.release(lock))
    expect(await using).toEqual({ granted: true, value: true })
    expect(stage.errors).toEqual([])
  })

  test('the session is closed under it: lost aborts, and using rejects; no listener is told', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    let losses = 0
    session.onLockLost(() => losses++)
    const using = session.using('k', {}, async (_, lost) => {
      const aborted = new Promise<void>((resolve) =>
        lost.addEventListener('abort', () => resolve()),
      )
      await session.close()
      await aborted
    })
    await expect(using).rejects.toThrow('its session was closed')
    expect(losses).toBe(0)
  })
})

describe('hold', () => {
  test('releases when its block is left', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    {
      await using held = await session.hold('k')
      expect(await stage.holder('k')).toBe(held.lock.fencingToken)
    }
    expect(await stage.holder('k')).toBeUndefined()
  })

  test('throws when the lock is not granted', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    await stage.other('k')
    await expect(session.hold('k')).rejects.toThrow(LockNotGrantedError)
  })

  test("P-05: the block's error is seen as it is, though the release fails", async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    stage.down('release')
    const block = async (): Promise<void> => {
      await using _held = await session.hold('k')
      throw new Error('E')
    }
    await expect(block()).rejects.toThrow(/^E$/)
    expect(stage.errors).toEqual(['release: unreachable'])
  })
})

describe('release', () => {
  test('P-20: a renewal in flight cannot bring the lock back, and nothing beats on after it', async () => {
    const stage = new Stage({ client: { sessionTtlMs: 60_000 } })
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k', { ttlMs: 1_000 })
    // Carried out before the release, answered after it.
    stage.service.next('renew', stage.answeredAfter(50))
    await stage.clock.advance(240)
    expect(stage.count('renew')).toBe(1)
    expect(await session.release(handle)).toBe(true)
    await stage.clock.advance(1_000)
    expect(() => session.checkStillHeld(handle)).toThrow('it was released')
    expect(await stage.holder('k')).toBeUndefined()
    expect(stage.count('renew')).toBe(1)
  })

  test('twice at once releases once', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k')
    expect(await Promise.all([session.release(handle), session.release(handle)])).toEqual([
      true,
      false,
    ])
    expect(await session.release(handle)).toBe(false)
    expect(stage.count('release')).toBe(1)
  })

  test('is not retried by itself, and a second call tries again', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k')
    stage.service.next('release', unreachable)
    await expect(session.release(handle)).rejects.toThrow(ContentionError)
    expect(await session.release(handle)).toBe(true)
  })

  test('of a grant that is gone is false', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k')
    await stage.store.revoke('k', 'operator', 'for the test')
    expect(await session.release(handle)).toBe(false)
  })
})

describe('close', () => {
  test('releases everything, gives up what waits, and leaves no timer', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    await taken(session, 'a')
    await taken(session, 'b')
    stage.service.next('acquire', silence)
    const asking = outcomeOf(session.acquire('c', { maxWaitMs: 60_000 }))
    const inLine = outcomeOf(session.acquire('a', { maxWaitMs: 60_000 }))
    await stage.clock.advance(10)
    await stage.client.close()
    await stage.clock.advance(2_000)
    expect([asking.error, inLine.error].every((e) => e instanceof SessionDeadError)).toBe(true)
    expect([await stage.holder('a'), await stage.holder('b')]).toEqual([undefined, undefined])
    expect(stage.clock.pendingTimers).toBe(0)
    expect(stage.lostSessions).toEqual([])
    await stage.client.close()
    expect(stage.count('closeSession')).toBe(1)
  })

  test('P-20: nothing beats on after it, not even a heartbeat that was being retried', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    stage.down('heartbeat')
    await stage.clock.advance(3_500)
    const beats = stage.count('heartbeat')
    await session.close()
    expect(stage.clock.pendingTimers).toBe(0)
    await stage.clock.advance(60_000)
    expect(stage.count('heartbeat')).toBe(beats)
  })

  test('is bounded, and never rejects, though the service is silent', async () => {
    const stage = new Stage()
    await using session = await stage.client.openSession('worker')
    await taken(session, 'k')
    stage.service.always('closeSession', silence)
    const closing = outcomeOf(stage.client.close())
    await stage.clock.advance(5_000)
    expect(closing.settled).toBe(true)
    expect(closing.error).toBeUndefined()
    expect(stage.errors).toEqual(['close: no answer in time: the call may have happened'])
  })

  test('a closed client opens no session', async () => {
    const stage = new Stage()
    await stage.client.close()
    await expect(stage.client.openSession('worker')).rejects.toThrow('the client is closed')
  })

  test('the client does not close a service that it was handed', async () => {
    const engine = new LockEngine({ store: new MemoryStore() })
    await engine.start()
    const client = new LockClient({ service: engine })
    await client.openSession('worker')
    await client.close()
    expect(await engine.openSession('another', 1_000)).toBeTypeOf('string')
    await engine.close()
  })
})

test('P-12: a really blocked event loop: the check throws before any await, then the loss is signalled', async () => {
  const client = new LockClient({ service: new LockEngine({ store: new MemoryStore() }) })
  const session = await client.openSession('worker')
  const handle = await taken(session, 'k', { ttlMs: 400 })
  const lost = session.lostSignal(handle)
  const until = systemClock.monotonicNanos() + 800_000_000n
  while (systemClock.monotonicNanos() < until) {}
  expect(() => session.checkStillHeld(handle)).toThrow(LockLostError)
  expect(lost.aborted).toBe(false)
  await new Promise<void>((resolve) => lost.addEventListener('abort', () => resolve()))
  await client.close()
})
