import type { Clock } from '@dlock/system'
import { ManualClock } from '@dlock/testing'
import { expect, test } from 'vitest'
import { LastHeld } from '../src/last-held.ts'

const MARGIN_MS = 2_400

test('while the lock is held, the whole margin is ahead', async () => {
  const clock = new ManualClock()
  const lastHeld = new LastHeld(() => {}, MARGIN_MS, clock)
  for (let step = 0; step < 10; step += 1) {
    await clock.advance(777)
    expect(lastHeld.safeForMs()).toBeGreaterThan(MARGIN_MS * 0.9)
    expect(lastHeld.safeForMs()).toBeLessThanOrEqual(MARGIN_MS)
  }
  lastHeld.stop()
  expect(clock.pendingTimers).toBe(0)
})

test('once it is lost, the margin runs out', async () => {
  const clock = new ManualClock()
  let held = true
  const check = (): void => {
    if (!held) throw new Error('lost')
  }
  const lastHeld = new LastHeld(check, MARGIN_MS, clock)
  await clock.advance(1_000)
  held = false
  await clock.advance(1_000)
  expect(lastHeld.safeForMs()).toBeLessThanOrEqual(MARGIN_MS - 1_000)
  await clock.advance(MARGIN_MS)
  expect(lastHeld.safeForMs()).toBeLessThan(0)
  expect(clock.pendingTimers).toBe(0)
})

test('P-12: when the event loop had no turn, it has run out by then', () => {
  const clock = new ManualClock()
  let lateNanos = 0n
  const blocked: Clock = {
    monotonicNanos: () => clock.monotonicNanos() + lateNanos,
    bootNanos: () => clock.bootNanos() + lateNanos,
    now: () => clock.now(),
    setTimer: (ms, fire) => clock.setTimer(ms, fire),
  }
  const lastHeld = new LastHeld(() => {}, MARGIN_MS, blocked)
  lateNanos = 10_000_000_000n
  expect(lastHeld.safeForMs()).toBe(MARGIN_MS - 10_000)
})

test('when the machine was suspended, it has run out by then', () => {
  const clock = new ManualClock()
  const lastHeld = new LastHeld(() => {}, MARGIN_MS, clock)
  clock.suspend(10_000)
  expect(lastHeld.safeForMs()).toBe(MARGIN_MS - 10_000)
})
