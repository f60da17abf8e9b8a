import { ContentionError, LockLostError, NotLeaderError, SessionDeadError } from '@dlock/lock-api'
import { describe, expect, test, vi } from 'vitest'
import { type AcquireOptions, LockClient } from '../src/index.ts'
import { outcomeOf, Stage, silence, taken, unreachable } from './stage.ts'

describe('an acquire', () => {
  test('of what another holds is undefined, after one question', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    await stage.other('k')
    expect(await session.acquire('k')).toBeUndefined()
    expect(stage.count('acquire')).toBe(1)
  })

  test('that waits asks the service to wait, under one deadline', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    await stage.other('k')
    const waits: unknown[] = []
    stage.service.always('acquire', async (real, { args }) => {
      waits.push(args[3])
      await stage.after(args[3])
      return real()
    })
    const acquiring = outcomeOf(session.acquire('k', { maxWaitMs: 5_000 }))
    await stage.clock.advance(4_999)
    expect(acquiring.settled).toBe(false)
    await stage.clock.advance(1)
    expect(acquiring).toEqual({ settled: true, value: undefined })
    expect(waits).toEqual([5_000])
  })

  test('is never asked again in a tight loop when the service refuses early', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    await stage.other('k')
    const acquiring = outcomeOf(session.acquire('k', { maxWaitMs: 5_000 }))
    await stage.clock.advance(5_001)
    expect(acquiring).toEqual({ settled: true, value: undefined })
    expect(stage.count('acquire')).toBeGreaterThan(50)
    expect(stage.count('acquire')).toBeLessThan(500)
  })

  test('P-17: two clients with one owner name exclude each other, with other tokens', async () => {
    const stage = new Stage()
    const twin = new LockClient({ service: stage.service, clock: stage.clock })
    const one = await stage.client.openSession('worker')
    const two = await twin.openSession('worker')
    const first = await taken(one, 'k')
    expect(await two.acquire('k')).toBeUndefined()
    await one.release(first)
    const second = await taken(two, 'k')
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken)
    await twin.close()
  })

  test('FR-28: retries what is retryable at most five times, and not at once', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    stage.down('acquire')
    const acquiring = outcomeOf(session.acquire('k', { maxWaitMs: 60_000 }))
    await stage.clock.advance(0)
    expect(stage.count('acquire')).toBe(1)
    await stage.clock.advance(10_000)
    expect(acquiring.error).toBeInstanceOf(ContentionError)
    expect(stage.count('acquire')).toBe(6)
  })

  test('comes back no sooner than a refusal that names a time allows', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    stage.service.next('acquire', () =>
      Promise.reject(new NotLeaderError('electing', { retryAfterMs: 900 })),
    )
    const acquiring = outcomeOf(session.acquire('k'))
    await stage.clock.advance(899)
    expect(stage.count('acquire')).toBe(1)
    await stage.clock.advance(101)
    expect(acquiring.value?.key).toBe('k')
  })

  test("P-01: a waiter whose own session dies is refused with it, not at the holder's leave", async () => {
    const stage = new Stage({ client: { sessionTtlMs: 10_000 } })
    const session = await stage.client.openSession('worker')
    stage.service.always('acquire', silence)
    stage.down('heartbeat')
    const acquiring = outcomeOf(session.acquire('k', { maxWaitMs: 3_600_000 }))
    await stage.clock.advance(6_999)
    expect(acquiring.settled).toBe(false)
    await stage.clock.advance(1 + 2_000)
    expect(acquiring.error).toBeInstanceOf(SessionDeadError)
  })

  test('has one deadline for all of it: the wait and one answer', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    stage.service.always('acquire', silence)
    const acquiring = outcomeOf(session.acquire('k', { maxWaitMs: 3_000 }))
    await stage.clock.advance(5_499)
    expect(acquiring.settled).toBe(false)
    await stage.clock.advance(1)
    expect(acquiring.error).toBeInstanceOf(ContentionError)
  })

  test('whose answer is lost adopts the grant: same token, nothing minted', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    stage.service.next('acquire', async (real) => {
      await real()
      throw new ContentionError('connection lost')
    })
    const acquiring = outcomeOf(session.acquire('k'))
    await stage.clock.advance(100)
    expect(acquiring.value?.fencingToken).toBe(1n)
  })

  test('that is granted after a wait longer than the lease hands out a whole lease', async () => {
    const stage = new Stage({ client: { sessionTtlMs: 60_000 } })
    const session = await stage.client.openSession('worker')
    stage.service.next('acquire', async (real) => {
      await stage.after(25_000)
      return real()
    })
    const acquiring = outcomeOf(session.acquire('k', { ttlMs: 10_000, maxWaitMs: 30_000 }))
    await stage.clock.advance(25_000)
    expect(acquiring.value?.clientDeadlineNanos).toBe(stage.clock.monotonicNanos() + 7_000_000_000n)
    session.checkStillHeld(acquiring.value as NonNullable<typeof acquiring.value>)
  })

  test('is not handed out when its lease is over before the answer is here', async () => {
    const stage = new Stage({ client: { sessionTtlMs: 60_000 } })
    const session = await stage.client.openSession('worker')
    const late = stage.answeredAfter(400)
    stage.service.always('acquire', late)
    stage.service.always('renew', late)
    const acquiring = outcomeOf(session.acquire('k', { ttlMs: 500 }))
    await stage.clock.advance(10_000)
    expect(acquiring.error).toBeInstanceOf(ContentionError)
    expect((acquiring.error as Error).message).toContain('a lease of 500 ms is over before')
    expect(await stage.holder('k')).toBeUndefined()
  })
})

describe('giving up', () => {
  test('before anything was asked leaves nothing to do', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const signal = AbortSignal.abort(new Error('no'))
    await expect(session.acquire('k', { signal })).rejects.toThrow('no')
    expect(stage.count('acquire')).toBe(0)
  })

  test('a wait that the service abandons is over at once, with the reason', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const controller = new AbortController()
    stage.service.next('acquire', (_, { args }) => {
      const signal = args[4] as AbortSignal
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error))
      })
    })
    const acquiring = session.acquire('k', { maxWaitMs: 60_000, signal: controller.signal })
    await stage.clock.advance(10)
    controller.abort(new Error('enough'))
    await expect(acquiring).rejects.toThrow('enough')
    expect(stage.count('acquire')).toBe(1)
  })

  test('while the grant is on its way releases it before it rejects', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const controller = new AbortController()
    stage.service.next('acquire', async (real) => {
      const handle = await real()
      controller.abort(new Error('enough'))
      return handle
    })
    const acquiring = session.acquire('k', { signal: controller.signal })
    await expect(acquiring).rejects.toThrow('enough')
    expect(await stage.holder('k')).toBeUndefined()
  })

  test('with the outcome unknown asks once more, and releases what it finds', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const controller = new AbortController()
    stage.service.next('acquire', async (real) => {
      await real()
      controller.abort(new Error('enough'))
      throw new ContentionError('connection lost')
    })
    const acquiring = session.acquire('k', { signal: controller.signal })
    await expect(acquiring).rejects.toThrow('enough')
    expect(await stage.holder('k')).toBeUndefined()
  })

  test('between two tries does so too', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const controller = new AbortController()
    stage.service.next('acquire', async (real) => {
      await real()
      throw new ContentionError('connection lost', { retryAfterMs: 1_000 })
    })
    const acquiring = outcomeOf(session.acquire('k', { signal: controller.signal }))
    await stage.clock.advance(500)
    expect(await stage.holder('k')).toBe(1n)
    controller.abort(new Error('enough'))
    await stage.clock.advance(0)
    expect((acquiring.error as Error).message).toBe('enough')
    expect(await stage.holder('k')).toBeUndefined()
  })

  test('is bounded when the service is silent, and what is left ends with its lease', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const controller = new AbortController()
    stage.service.next('acquire', async (real) => {
      await real()
      return silence()
    })
    stage.service.always('acquire', silence)
    const { signal } = controller
    const acquiring = outcomeOf(session.acquire('k', { ttlMs: 10_000, maxWaitMs: 60_000, signal }))
    await stage.clock.advance(1_000)
    controller.abort(new Error('enough'))
    await stage.clock.advance(4_500)
    expect((acquiring.error as Error).message).toBe('enough')
    expect(await stage.holder('k')).toBe(1n)
    await stage.clock.advance(4_500)
    expect(await stage.holder('k')).toBeUndefined()
  })

  test('P-22: a hundred waits on one signal leave no listener and cause no warning', async () => {
    const warnings: Error[] = []
    const onWarning = (warning: Error): number => warnings.push(warning)
    process.on('warning', onWarning)
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const { signal } = new AbortController()
    const add = vi.spyOn(signal, 'addEventListener')
    const remove = vi.spyOn(signal, 'removeEventListener')
    await stage.other('k')
    const waits = Array.from({ length: 100 }, (_, i) =>
      session.acquire(i < 50 ? 'k' : `k${i}`, { maxWaitMs: 100, signal }),
    )
    expect(add).toHaveBeenCalledTimes(1)
    await stage.clock.advance(3_000)
    await Promise.all(waits)
    process.off('warning', onWarning)
    expect(remove.mock.calls[0]?.[1]).toBe(add.mock.calls[0]?.[1])
    expect(warnings).toEqual([])
  })
})

describe('decision 3: two tasks of one session', () => {
  test('exclude each other, first in, first out, with one request at a time', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const order: string[] = []
    const task = (name: string) =>
      session.using('k', { maxWaitMs: 60_000 }, async ({ fencingToken }) => {
        order.push(`${name} ${fencingToken}`)
        expect(stage.count('acquire')).toBe(order.length)
        await stage.after(1_000)
      })
    const tasks = Promise.all(['a', 'b', 'c'].map(task))
    await stage.clock.advance(5_000)
    await tasks
    expect(order).toEqual(['a 1', 'b 2', 'c 3'])
  })

  test('who does not want to wait is refused without a request', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    await taken(session, 'k')
    expect(await session.acquire('k')).toBeUndefined()
    expect(stage.count('acquire')).toBe(1)
  })

  test('P-18: one that leaves the line by time-out or abort does not hold up the next', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k')
    const controller = new AbortController()
    const aborted = outcomeOf(session.acquire('k', { maxWaitMs: 9_000, signal: controller.signal }))
    const timedOut = outcomeOf(session.acquire('k', { maxWaitMs: 1_000 }))
    const last = outcomeOf(session.acquire('k', { maxWaitMs: 9_000 }))
    await stage.clock.advance(1_000)
    controller.abort(new Error('enough'))
    await stage.clock.advance(0)
    expect(timedOut).toEqual({ settled: true, value: undefined })
    expect((aborted.error as Error).message).toBe('enough')
    await session.release(handle)
    await stage.clock.advance(0)
    expect(last.value?.fencingToken).toBe(2n)
  })

  test('a wait in line counts: the service is asked to wait for what is left', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const handle = await taken(session, 'k')
    const waits: unknown[] = []
    stage.service.always('acquire', (real, { args }) => {
      waits.push(args[3])
      return real()
    })
    const acquiring = session.acquire('k', { maxWaitMs: 10_000 })
    await stage.clock.advance(4_000)
    await session.release(handle)
    await acquiring
    expect(waits).toEqual([6_000])
  })

  test('a token is carried by one holder: not again after a loss that only this process knows', async () => {
    const stage = new Stage({ client: { sessionTtlMs: 60_000 } })
    const session = await stage.client.openSession('worker')
    const first = await taken(session, 'k', { ttlMs: 10_000, maxHoldMs: 1_000 })
    await stage.clock.advance(1_000)
    expect(() => session.checkStillHeld(first)).toThrow(LockLostError)
    expect(await stage.holder('k')).toBe(first.fencingToken)
    const second = await taken(session, 'k')
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken)
  })

  test('a token is carried by one holder: not again after a release without an answer', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    const first = await taken(session, 'k')
    stage.service.next('release', unreachable)
    await expect(session.release(first)).rejects.toThrow(ContentionError)
    const second = await taken(session, 'k')
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken)
  })
})

describe('P-14: leases and waits', () => {
  test.each([1, 999, 1_500, 2_592_000_000])(
    'a lease of %d ms is asked for as it is',
    async (ttlMs) => {
      const stage = new Stage()
      const session = await stage.client.openSession('worker')
      const sentAt = stage.clock.monotonicNanos()
      const handle = await taken(session, 'k', { ttlMs })
      expect(stage.service.calls.at(-1)?.args[2]).toBe(ttlMs)
      expect(handle.clientDeadlineNanos - sentAt).toBeLessThanOrEqual(BigInt(ttlMs) * 700_000n)
    },
  )

  test('a lease of 30 days starts no timer that fires at once', async () => {
    const stage = new Stage({ client: { sessionTtlMs: 2_592_000_000 } })
    const session = await stage.client.openSession('worker')
    await taken(session, 'k', { ttlMs: 2_592_000_000 })
    await stage.clock.advance(60_000)
    expect(stage.count('heartbeat')).toBe(0)
  })

  const bad: [string, AcquireOptions][] = [0, -1, Number.NaN, 1.5, 2 ** 53].flatMap((ms) => [
    [`ttlMs ${ms}`, { ttlMs: ms }],
    [`maxHoldMs ${ms}`, { maxHoldMs: ms }],
    ...(ms === 0 ? [] : [[`maxWaitMs ${ms}`, { maxWaitMs: ms }] as [string, AcquireOptions]]),
  ])
  test.each(bad)('%s is refused, and nothing is asked', async (name, options) => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    await expect(session.acquire('k', options)).rejects.toThrow(RangeError)
    await expect(session.acquire('k', options)).rejects.toThrow(name.split(' ')[0])
    expect(stage.count('acquire')).toBe(0)
  })

  test('a bad key, owner or option is refused with its name', async () => {
    const stage = new Stage()
    const session = await stage.client.openSession('worker')
    await expect(session.acquire('')).rejects.toThrow('key must not be blank')
    await expect(stage.client.openSession(' ')).rejects.toThrow('ownerId must not be blank')
    const { service } = stage
    expect(() => new LockClient({ service, sessionTtlMs: 0 })).toThrow('sessionTtlMs')
    expect(() => new LockClient({ service, safetyMargin: 1 })).toThrow('safetyMargin')
    expect(() => new LockClient({ url: 'nowhere' })).toThrow('url must be a URL')
    expect(() => new LockClient({ url: 'ftp://x' })).toThrow('url must begin with http')
    const transport = 'carrier pigeon' as 'http'
    expect(() => new LockClient({ url: 'http://x', transport })).toThrow('transport must be')
  })
})
