import { uptime } from 'node:os'
import process from 'node:process'
import type { Clock, Timer } from './clock.ts'

/** A longer delay overflows the runtime's timer, which would then fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** This process's own clocks. */
export const systemClock: Clock = {
  monotonicNanos: () => process.hrtime.bigint(),
  bootNanos: () => BigInt(Math.round(uptime() * 1_000)) * 1_000_000n,
  now: () => new Date(),
  setTimer(delayMs, fire, options = {}): Timer {
    const end = process.hrtime.bigint() + BigInt(Math.ceil(Math.max(delayMs, 0) * 1_000_000))
    let timer: NodeJS.Timeout
    const arm = (leftMs: number): void => {
      timer = setTimeout(fireOrGoOn, Math.min(Math.ceil(leftMs), LONGEST_TIMER_MS))
      if (options.keepAlive !== true) timer.unref()
    }
    const fireOrGoOn = (): void => {
      const leftMs = Number(end - process.hrtime.bigint()) / 1_000_000
      if (leftMs <= 0) fire()
      else arm(leftMs)
    }
    arm(Math.max(delayMs, 0))
    return { cancel: () => clearTimeout(timer) }
  },
}
