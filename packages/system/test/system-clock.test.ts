import { execFile } from 'node:child_process'
import { uptime } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { systemClock } from '@dlock/system'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

const THIRTY_DAYS_MS = 30 * 86_400_000
/** A longer delay overflows the runtime's own timer. */
const LONGEST_MS = 2 ** 31 - 1

describe('timers', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'hrtime'] })
    const { setTimeout: runtimeTimer } = globalThis
    vi.spyOn(globalThis, 'setTimeout').mockImplementation(((fire: () => void, ms: number) => {
      // The runtime would fire at once, and the clock would spin.
      if (ms > LONGEST_MS) throw new RangeError(`${ms} ms overflow the runtime's timer`)
      return runtimeTimer(fire, ms)
    }) as typeof setTimeout)
  })

  afterEach(() => {
    vi.restoreAllMocks()
    vi.useRealTimers()
  })

  test('a timer fires once, when it is due', () => {
    const fire = vi.fn()
    systemClock.setTimer(1_500, fire)
    vi.advanceTimersByTime(1_499)
    expect(fire).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(fire).toHaveBeenCalledTimes(1)
    vi.advanceTimersByTime(10_000)
    expect(fire).toHaveBeenCalledTimes(1)
  })

  test.each([LONGEST_MS, LONGEST_MS + 1, 2 ** 32, THIRTY_DAYS_MS])(
    'P-14: a timer of %d ms does not fire at once, but when it is due',
    (delayMs) => {
      const fire = vi.fn()
      systemClock.setTimer(delayMs, fire)
      vi.advanceTimersByTime(delayMs - 1)
      expect(fire).not.toHaveBeenCalled()
      vi.advanceTimersByTime(1)
      expect(fire).toHaveBeenCalledTimes(1)
    },
  )

  test('cancelling is idempotent, and good for whichever leg the timer is on', () => {
    const fire = vi.fn()
    const timer = systemClock.setTimer(THIRTY_DAYS_MS, fire)
    vi.advanceTimersByTime(LONGEST_MS + 1)
    timer.cancel()
    timer.cancel()
    vi.advanceTimersByTime(THIRTY_DAYS_MS)
    timer.cancel()
    expect(fire).not.toHaveBeenCalled()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('a timer that is cancelled after it fired has fired, and nothing else happens', () => {
    const fire = vi.fn()
    const timer = systemClock.setTimer(1, fire)
    vi.advanceTimersByTime(1)
    timer.cancel()
    expect(fire).toHaveBeenCalledTimes(1)
  })

  test('a fraction of a millisecond is not cut off: no timer is early', () => {
    const fire = vi.fn()
    systemClock.setTimer(1.5, fire)
    vi.advanceTimersByTime(1)
    expect(fire).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(fire).toHaveBeenCalledTimes(1)
  })
})

describe('a timer does not keep the process alive, unless it is asked to', () => {
  const run = async (script: string): Promise<string> => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--import', 'tsx', '--conditions', '@dlock/source', '--input-type=module', '-e', script],
      { cwd: fileURLToPath(new URL('..', import.meta.url)), timeout: 60_000 },
    )
    return stdout
  }

  test('by default the process ends before an hour is over', async () => {
    const script = `
      import { systemClock } from '@dlock/system'
      systemClock.setTimer(3_600_000, () => console.log('fired'))
      console.log('ends')`
    expect(await run(script)).toBe('ends\n')
  })

  test('with keepAlive it stays until the timer has fired', async () => {
    const script = `
      import { systemClock } from '@dlock/system'
      systemClock.setTimer(20, () => console.log('fired'), { keepAlive: true })`
    expect(await run(script)).toBe('fired\n')
  })
})

test('the monotonic clock does not go back', () => {
  let last = systemClock.monotonicNanos()
  for (let reading = 0; reading < 1_000; reading++) {
    const next = systemClock.monotonicNanos()
    expect(next >= last).toBe(true)
    last = next
  }
})

test('the boot clock reads what the operating system says, to a hundredth of a second', () => {
  const before = uptime()
  const reading = Number(systemClock.bootNanos()) / 1e9
  expect(reading).toBeGreaterThanOrEqual(before - 0.01)
  expect(reading).toBeLessThanOrEqual(uptime() + 0.01)
})
