import { ManualClock } from '@dlock/testing'
import { expect, test } from 'vitest'

const SECOND = 1_000_000_000n

test('time stands still until it is moved, and then all three clocks move together', async () => {
  const clock = new ManualClock({ wallTime: new Date(1_000), monotonicNanos: 5n })
  expect([clock.monotonicNanos(), clock.bootNanos(), clock.now()]).toEqual([
    5n,
    5n,
    new Date(1_000),
  ])
  await clock.advance(1_000)
  expect(clock.monotonicNanos()).toBe(5n + SECOND)
  expect(clock.bootNanos()).toBe(5n + SECOND)
  expect(clock.now()).toEqual(new Date(2_000))
})

test('decision 10: while the machine sleeps the boot clock runs and the monotonic one does not', async () => {
  const clock = new ManualClock()
  const before = { monotonic: clock.monotonicNanos(), boot: clock.bootNanos(), wall: +clock.now() }
  let fired = false
  clock.setTimer(1_000, () => {
    fired = true
  })
  clock.suspend(60_000)
  await clock.advance(0)
  expect(clock.monotonicNanos()).toBe(before.monotonic)
  expect(clock.bootNanos() - before.boot).toBe(60n * SECOND)
  expect(+clock.now() - before.wall).toBe(60_000)
  expect(fired).toBe(false)
})

test('P-13: a jump of the wall clock moves nothing else, in either direction', () => {
  const clock = new ManualClock({ wallTime: new Date(10_000) })
  const [monotonic, boot] = [clock.monotonicNanos(), clock.bootNanos()]
  clock.jumpWall(3_600_000)
  expect(clock.now()).toEqual(new Date(3_610_000))
  clock.jumpWall(-3_610_000)
  expect(clock.now()).toEqual(new Date(0))
  expect([clock.monotonicNanos(), clock.bootNanos()]).toEqual([monotonic, boot])
})

test('timers fire when due, each at its own instant, equals in the order of setting', async () => {
  const clock = new ManualClock({ monotonicNanos: 0n })
  const fired: string[] = []
  const note = (name: string) => () => fired.push(`${name}@${clock.monotonicNanos() / 1_000_000n}`)
  clock.setTimer(30, note('c'))
  clock.setTimer(10, note('a'))
  clock.setTimer(20, note('b1'))
  clock.setTimer(20, note('b2'))
  clock.setTimer(31, note('late'))
  await clock.advance(30)
  expect(fired).toEqual(['a@10', 'b1@20', 'b2@20', 'c@30'])
  expect(clock.pendingTimers).toBe(1)
})

test('promise chains settle between two timers, and may set the next one', async () => {
  const clock = new ManualClock({ monotonicNanos: 0n })
  const ticks: bigint[] = []
  const dueIn = (ms: number) => new Promise<void>((done) => void clock.setTimer(ms, done))
  const beat = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn++) {
      await dueIn(10)
      for (let hop = 0; hop < 20; hop++) await Promise.resolve()
      ticks.push(clock.monotonicNanos() / 1_000_000n)
    }
  }
  const beating = beat()
  await clock.advance(35)
  await beating
  expect(ticks).toEqual([10n, 20n, 30n])
})

test('a timer that is cancelled does not fire, even by an earlier one of the same instant', async () => {
  const clock = new ManualClock()
  let fired = false
  clock.setTimer(10, () => second.cancel())
  const second = clock.setTimer(10, () => {
    fired = true
  })
  await clock.advance(20)
  second.cancel()
  expect(fired).toBe(false)
  expect(clock.pendingTimers).toBe(0)
})

test('P-14: a delay beyond 2^31 ms fires when it is due and not before', async () => {
  const clock = new ManualClock()
  let fired = false
  clock.setTimer(30 * 86_400_000, () => {
    fired = true
  })
  await clock.advance(30 * 86_400_000 - 0.001)
  expect(fired).toBe(false)
  await clock.advance(0.001)
  expect(fired).toBe(true)
})

test('what a timer throws reaches the test, at that timer’s instant', async () => {
  const clock = new ManualClock({ monotonicNanos: 0n })
  clock.setTimer(10, () => {
    throw new Error('from the timer')
  })
  await expect(clock.advance(20)).rejects.toThrow('from the timer')
  expect(clock.monotonicNanos()).toBe(10_000_000n)
  await clock.advance(10)
})

test('two moves at once are a forgotten await, and say so', async () => {
  const clock = new ManualClock()
  const first = clock.advance(10)
  await expect(clock.advance(10)).rejects.toThrow('await it first')
  await first
})

test.each([-1, Number.NaN, Number.POSITIVE_INFINITY])('time does not move by %d', async (ms) => {
  const clock = new ManualClock()
  await expect(clock.advance(ms)).rejects.toThrow(RangeError)
  expect(() => clock.suspend(ms)).toThrow(RangeError)
})
