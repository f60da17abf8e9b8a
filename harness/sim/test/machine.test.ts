import { expect, test } from 'vitest'
import { Chance } from '../src/chance.ts'
import { Machine } from '../src/machine.ts'
import { VirtualTime } from '../src/virtual-time.ts'

const MS = 1_000_000

function machineAt(time: VirtualTime, ratePpm = 0): Machine {
  const skew = { ratePpm, sinceBootNanos: 0, wallOffMs: 0 }
  return new Machine('m', time, new Chance(1, 'm'), skew)
}

async function runTo(time: VirtualTime, ms: number): Promise<void> {
  await time.run(ms * MS, () => false)
}

test('steps are taken when they are due, and those of one instant in the order of planning', async () => {
  const time = new VirtualTime()
  const seen: string[] = []
  time.after(2, () => seen.push('c'))
  time.after(1, () => {
    seen.push('a')
    time.after(0, () => seen.push('after a'))
  })
  time.after(1, () => seen.push('b'))
  time.after(1.5, () => seen.push('never')).cancel()
  await runTo(time, 5)
  expect(seen).toEqual(['a', 'b', 'after a', 'c'])
  expect(time.nowNanos).toBe(5 * MS)
})

test('a fast clock’s timer is early, a slow clock’s late', async () => {
  const time = new VirtualTime()
  const fired: number[] = []
  for (const ratePpm of [100_000, -100_000]) {
    machineAt(time, ratePpm)
      .clock()
      .setTimer(99, () => fired.push(Math.round(time.nowNanos / MS)))
  }
  await runTo(time, 200)
  expect(fired).toEqual([90, 110])
})

test('a machine that sleeps stops its monotonic clock and timers, and no other clock', async () => {
  const time = new VirtualTime()
  const machine = machineAt(time)
  const clock = machine.clock()
  const startedAt = clock.now().getTime()
  const fired: number[] = []
  clock.setTimer(100, () => fired.push(time.nowNanos / MS))
  time.after(50, () => machine.sleep())
  time.after(550, () => machine.wake())
  await runTo(time, 1_000)
  expect(fired).toEqual([600])
  expect(clock.monotonicNanos()).toBe(BigInt(500 * MS))
  expect(clock.bootNanos()).toBe(BigInt(1_000 * MS))
  expect(clock.now().getTime() - startedAt).toBe(1_000)
})

test('what enters a paused process waits, while its clocks run on', async () => {
  const time = new VirtualTime()
  const machine = machineAt(time)
  const clock = machine.clock()
  const seen: string[] = []
  clock.setTimer(10, () => seen.push(`timer at ${clock.monotonicNanos() / 1_000_000n}`))
  time.after(5, () => machine.pause())
  time.after(20, () => machine.enter(0, () => seen.push('message')))
  time.after(100, () => machine.resume())
  await runTo(time, 99)
  expect(seen).toEqual([])
  await runTo(time, 101)
  expect(seen.sort()).toEqual(['message', 'timer at 100'])
})

test('nothing of a killed process ever runs again, whatever life came after', async () => {
  const time = new VirtualTime()
  const machine = machineAt(time)
  const { life } = machine
  const clock = machine.clock()
  let ran = false
  const run = (): void => void (ran = true)
  clock.setTimer(10, run)
  time.after(5, () => {
    machine.kill()
    machine.start()
    clock.setTimer(10, run)
  })
  time.after(20, () => machine.enter(life, run))
  await runTo(time, 100)
  expect(ran).toBe(false)
})

test('a jump forward makes timers due earlier', async () => {
  const time = new VirtualTime()
  const machine = machineAt(time)
  const fired: number[] = []
  machine.clock().setTimer(100, () => fired.push(time.nowNanos / MS))
  time.after(10, () => machine.jump('monotonic', 60))
  await runTo(time, 200)
  expect(fired).toEqual([40])
  expect(machine.jumps).toBe(1)
})
