import { LockHandle } from '@dlock/lock-api'
import { ManualClock } from '@dlock/testing'
import { expect, test } from 'vitest'
import { Detector, MemoryCell } from '../src/index.ts'

const clock = new ManualClock()

function lock(owner: string, token: bigint, deadlineMs: number): LockHandle {
  const deadline = clock.monotonicNanos() + BigInt(deadlineMs) * 1_000_000n
  return new LockHandle('k', owner, `session of ${owner}`, token, deadline, clock.now())
}

const LIVE_MS = 1_000
const OVER_MS = 0

test('critical sections one after the other are no violation', async () => {
  const detector = new Detector(new MemoryCell(), clock)
  for (const held of [lock('a', 1n, LIVE_MS), lock('b', 2n, LIVE_MS), lock('a', 7n, LIVE_MS)]) {
    expect(await detector.enter(held)).toBe(true)
    await detector.leave(held)
  }
  expect([detector.violations, detector.fencedOut]).toEqual([0, 0])
})

test('a holder before its deadline that is overwritten, or refused, is a violation', async () => {
  const detector = new Detector(new MemoryCell(), clock)
  const [first, second] = [lock('a', 1n, LIVE_MS), lock('b', 2n, LIVE_MS)]
  await detector.enter(first)
  await detector.enter(second)
  await detector.leave(first)
  expect(detector.violations).toBe(1)
  expect(await detector.enter(first)).toBe(false)
  expect(detector.violations).toBe(2)
  expect(detector.described).toEqual([
    'k: a wrote 1 and finds 2 of b',
    'k: a holds 1 and is refused, by 2',
  ])
})

test('two that believe to hold are no violation: a stale holder is fenced out', async () => {
  const detector = new Detector(new MemoryCell(), clock)
  const [stale, next] = [lock('a', 1n, OVER_MS), lock('b', 2n, LIVE_MS)]
  await detector.enter(stale)
  await detector.enter(next)
  await detector.leave(stale)
  expect(await detector.enter(stale)).toBe(false)
  await detector.leave(next)
  expect([detector.violations, detector.fencedOut]).toEqual([0, 2])
})

test('INV-04: one token of two owners is a violation, whatever their deadlines', async () => {
  const detector = new Detector(new MemoryCell(), clock)
  await detector.enter(lock('a', 1n, OVER_MS))
  await detector.enter(lock('b', 1n, OVER_MS))
  expect(detector.violations).toBe(1)
})

test('INV-05: a cell that goes back to a lower token is a violation', async () => {
  const forgetful = { write: async () => ({ accepted: true, before: undefined }) }
  const cell = { ...forgetful, read: async () => ({ owner: 'a', token: 1n }) }
  const detector = new Detector(cell, clock)
  await detector.leave(lock('b', 2n, OVER_MS))
  expect(detector.violations).toBe(1)
})
