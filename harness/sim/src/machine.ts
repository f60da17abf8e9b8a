import type { Clock, Timer } from '@dlock/system'
import type { Chance } from './chance.ts'
import type { Planned, VirtualTime } from './virtual-time.ts'

/** How a machine's clocks differ from true time. */
export interface Skew {
  /** How much faster than true time its clocks run, in millionths; may be negative. */
  readonly ratePpm: number
  /** What its monotonic and boot clocks read at the beginning, in nanoseconds. */
  readonly sinceBootNanos: number
  /** How far its wall clock is off, in milliseconds. */
  readonly wallOffMs: number
}

interface PendingTimer {
  readonly dueNanos: number
  readonly fire: () => void
  readonly life: number
  planned: Planned | undefined
}

interface Waiting {
  readonly isTimer: boolean
  readonly act: () => void
}

const WALL_START_MS = Date.UTC(2026, 0, 1)
/** The kernel shows the boot clock in steps of 10 ms. */
const BOOT_STEP_NANOS = 10_000_000

/**
 * A machine and the one process on it. Its code runs only when something **enters** it: a timer of
 * its own clock, or a message. A paused process is entered by nothing until it goes on; a killed
 * one never again: what was started in an earlier **life** is dead for good.
 */
export class Machine {
  readonly name: string
  readonly #time: VirtualTime
  readonly #chance: Chance
  readonly #skew: Skew
  readonly #timers = new Set<PendingTimer>()
  #inbox: Waiting[] = []
  #life = 0
  #isUp = true
  #pauses = 0
  #asleepSince: number | undefined
  #sleptNanos = 0
  #jumps = 0
  #monotonicJumpNanos = 0
  #bootJumpNanos = 0
  #wallJumpMs = 0

  constructor(name: string, time: VirtualTime, chance: Chance, skew: Skew) {
    this.name = name
    this.#time = time
    this.#chance = chance
    this.#skew = skew
  }

  /** Which life this is: what belongs to an earlier one is dead. */
  get life(): number {
    return this.#life
  }

  get isUp(): boolean {
    return this.#isUp
  }

  /** How often the monotonic clock was moved by hand: a duration across that means nothing. */
  get jumps(): number {
    return this.#jumps
  }

  /** The machine's clocks, whose timers fire only in the present life. */
  clock(): Clock {
    const life = this.#life
    return {
      monotonicNanos: () => BigInt(this.#monotonicNanos()),
      bootNanos: () => BigInt(this.#bootNanos()),
      now: () => new Date(WALL_START_MS + this.#skew.wallOffMs + this.#wallMs()),
      setTimer: (delayMs, fire) => this.#setTimer(delayMs, fire, life),
    }
  }

  /** Runs `act` here, now or when the process goes on; never, if `life` is over. */
  enter(life: number, act: () => void, isTimer = false): void {
    if (life !== this.#life || !this.#isUp) return
    if (this.#isStill) this.#inbox.push({ isTimer, act })
    else act()
  }

  /** SIGSTOP: its clocks run on. Pauses add up. */
  pause(): void {
    this.#pauses += 1
  }

  /** SIGCONT. */
  resume(): void {
    this.#pauses -= 1
    this.#goOn()
  }

  /** The whole machine sleeps: its monotonic clock stands still, boot and wall clock go on. */
  sleep(): void {
    this.#asleepSince ??= this.#time.nowNanos
  }

  wake(): void {
    if (this.#asleepSince === undefined) return
    this.#sleptNanos += this.#time.nowNanos - this.#asleepSince
    this.#asleepSince = undefined
    this.#replan()
    this.#goOn()
  }

  /** kill -9. */
  kill(): void {
    this.#life += 1
    this.#isUp = false
    this.#inbox = []
    for (const timer of this.#timers) timer.planned?.cancel()
    this.#timers.clear()
  }

  /** A new process; whoever calls it gives it something to do. */
  start(): void {
    this.#isUp = true
  }

  /** A clock jumps by `ms`: the monotonic and the boot clock forward only. */
  jump(which: 'monotonic' | 'boot' | 'wall', ms: number): void {
    if (which === 'wall') this.#wallJumpMs += ms
    else if (which === 'boot') this.#bootJumpNanos += Math.abs(ms) * 1_000_000
    else {
      this.#jumps += 1
      this.#monotonicJumpNanos += Math.abs(ms) * 1_000_000
      this.#replan()
    }
  }

  get #isStill(): boolean {
    return this.#pauses > 0 || this.#asleepSince !== undefined
  }

  get #rate(): number {
    return 1 + this.#skew.ratePpm / 1_000_000
  }

  #monotonicNanos(): number {
    const awake = (this.#asleepSince ?? this.#time.nowNanos) - this.#sleptNanos
    return Math.floor(this.#skew.sinceBootNanos + this.#monotonicJumpNanos + awake * this.#rate)
  }

  #bootNanos(): number {
    const exact = this.#skew.sinceBootNanos + this.#bootJumpNanos + this.#time.nowNanos * this.#rate
    return Math.floor(exact / BOOT_STEP_NANOS) * BOOT_STEP_NANOS
  }

  #wallMs(): number {
    return Math.floor((this.#time.nowNanos * this.#rate) / 1_000_000) + this.#wallJumpMs
  }

  #setTimer(delayMs: number, fire: () => void, life: number): Timer {
    const dueNanos = this.#monotonicNanos() + Math.max(delayMs, 0) * 1_000_000
    const timer: PendingTimer = { dueNanos, fire, life, planned: undefined }
    if (life !== this.#life) return { cancel() {} }
    this.#timers.add(timer)
    this.#plan(timer)
    return {
      cancel: () => {
        timer.planned?.cancel()
        this.#timers.delete(timer)
      },
    }
  }

  #plan(timer: PendingTimer): void {
    timer.planned?.cancel()
    const leftNanos = (timer.dueNanos - this.#monotonicNanos()) / this.#rate
    timer.planned = this.#time.at(this.#time.nowNanos + leftNanos, () => this.#due(timer))
  }

  #due(timer: PendingTimer): void {
    // It is planned anew when the machine wakes.
    if (this.#asleepSince !== undefined) return
    if (this.#monotonicNanos() < timer.dueNanos) {
      timer.planned = this.#time.at(this.#time.nowNanos + 1_000, () => this.#due(timer))
      return
    }
    // Still in the set while the process is paused: it may be cancelled by what enters before it.
    const fire = (): void => {
      if (this.#timers.delete(timer)) timer.fire()
    }
    this.enter(timer.life, fire, true)
  }

  #replan(): void {
    for (const timer of this.#timers) this.#plan(timer)
  }

  /** An event loop that goes on finds timers and messages waiting; who is first is not promised. */
  #goOn(): void {
    if (this.#isStill || this.#inbox.length === 0) return
    const waiting = this.#inbox
    this.#inbox = []
    if (this.#chance.happens(0.5)) {
      waiting.sort((a, b) => Number(b.isTimer) - Number(a.isTimer))
    }
    const life = this.#life
    for (const { act, isTimer } of waiting) {
      this.#time.after(0, () => this.enter(life, act, isTimer))
    }
  }
}
