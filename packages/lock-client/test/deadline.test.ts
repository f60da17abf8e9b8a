import { ManualClock } from '@dlock/testing'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Lease, LeaseClock } from '../src/deadline.ts'
import { Stage, taken } from './stage.ts'

const MS = 1_000_000n

test('a lease ends at sent + granted × (1 − margin)', () => {
  expect(new Lease(0n, 10_000, 0.3).endsAt).toBe(7_000n * MS)
  expect(new Lease(5n, 10_000, 0).endsAt).toBe(5n + 10_000n * MS)
})

test('FR-11: whatever is granted and renewed, it never ends later than its request allows', () => {
  const request = fc.record({
    sentAt: fc.bigInt(0n, 10n ** 18n),
    grantedMs: fc.integer({ min: 1, max: 31_536_000_000 }),
  })
  const margins = fc.double({ min: 0, max: 0.999, noNaN: true })
  fc.assert(
    fc.property(request, fc.array(request), margins, (first, renewals, margin) => {
      const lease = new Lease(first.sentAt, first.grantedMs, margin)
      let latest = first.sentAt + BigInt(first.grantedMs) * MS
      for (const { sentAt, grantedMs } of renewals) {
        const before = lease.endsAt
        lease.prolong(sentAt, grantedMs)
        const allowed = sentAt + BigInt(grantedMs) * MS
        if (allowed > latest) latest = allowed
        expect(lease.endsAt).toBeGreaterThanOrEqual(before)
        expect(lease.endsAt).toBeLessThanOrEqual(latest)
        expect(lease.renewAt).toBeLessThan(lease.endsAt)
      }
    }),
  )
})

test('a renewal that was overtaken by a later one does not shorten the lease', () => {
  const lease = new Lease(0n, 10_000, 0)
  lease.prolong(5_000n * MS, 10_000)
  lease.prolong(2_000n * MS, 10_000)
  expect(lease.endsAt).toBe(15_000n * MS)
})

test('decision 10: the lease clock runs with the monotonic clock and jumps over suspensions', async () => {
  const clock = new ManualClock()
  const leaseClock = new LeaseClock(clock)
  const begin = leaseClock.notice()
  await clock.advance(1_000)
  expect(leaseClock.notice() - begin).toBe(1_000n * MS)
  clock.suspend(5_000)
  expect(leaseClock.instant() - begin).toBe(1_000n * MS)
  expect(leaseClock.notice() - begin).toBe(6_000n * MS)
  await clock.advance(1_000)
  expect(leaseClock.instant() - begin).toBe(7_000n * MS)
  expect(leaseClock.toMonotonic(leaseClock.instant())).toBe(clock.monotonicNanos())
})

test('decision 10: a boot clock that is read in steps of 10 ms is no suspension', () => {
  let monotonic = 0n
  const clock = {
    monotonicNanos: () => monotonic,
    bootNanos: () => (monotonic / (10n * MS)) * 10n * MS,
    now: () => new Date(0),
    setTimer: () => ({ cancel() {} }),
  }
  const leaseClock = new LeaseClock(clock)
  for (let i = 0; i < 1_000; i++) {
    monotonic += 3n * MS
    leaseClock.notice()
  }
  expect(leaseClock.instant()).toBe(monotonic)
})

test('FR-11: a handle carries the deadline of its request, not of its answer', async () => {
  const stage = new Stage({ client: { sessionTtlMs: 60_000 } })
  const session = await stage.client.openSession('worker')
  const sentAt = stage.clock.monotonicNanos()
  stage.service.next('acquire', async (real) => {
    await stage.clock.advance(1_200)
    const handle = await real()
    await stage.clock.advance(1_000)
    return handle
  })
  const handle = await taken(session, 'k', { ttlMs: 30_000 })
  expect(handle.clientDeadlineNanos).toBe(sentAt + 21_000n * MS)
})

test("a handle's deadline is its session's when that is the earlier one", async () => {
  const stage = new Stage({ client: { sessionTtlMs: 10_000 } })
  const openedAt = stage.clock.monotonicNanos()
  const session = await stage.client.openSession('worker')
  const handle = await taken(session, 'k', { ttlMs: 30_000 })
  expect(handle.clientDeadlineNanos).toBe(openedAt + 7_000n * MS)
})

test.each([0, 0.5, 0.9])(
  'the margin %d is the part of a lease that does not count',
  async (margin) => {
    const stage = new Stage({ client: { sessionTtlMs: 60_000, safetyMargin: margin } })
    const session = await stage.client.openSession('worker')
    const sentAt = stage.clock.monotonicNanos()
    const handle = await taken(session, 'k', { ttlMs: 10_000 })
    const counted = BigInt(Math.round(10_000 * (1 - margin))) * MS
    expect(handle.clientDeadlineNanos).toBeLessThanOrEqual(sentAt + counted)
    expect(handle.clientDeadlineNanos).toBeGreaterThan(sentAt + counted - MS)
  },
)
