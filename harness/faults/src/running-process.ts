import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { type Clock, systemClock } from '@dlock/system'

export interface StartOptions {
  readonly args?: readonly string[]
  /** Default: this process's folder. */
  readonly cwd?: string
  /** Added to this process's environment; `undefined` removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Run as another user, which takes root. */
  readonly uid?: number
  readonly gid?: number
  readonly clock?: Clock
}

/** How a process ended: by itself with a code, or by a signal. */
export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/**
 * Starts `command` as the leader of a process group of its own.
 *
 * @throws Error when it cannot be started
 */
export function startProcess(command: string, options: StartOptions = {}): Promise<RunningProcess> {
  return RunningProcess.start(command, options)
}

/** For what a process printed before it ended, when others still hold its output. */
const REST_OF_OUTPUT_MS = 1_000

/** A child process whose lines are kept, and whose whole group can be paused and killed. */
export class RunningProcess implements AsyncDisposable {
  readonly pid: number
  /**
   * Resolves when the process itself has ended and its lines are all there; what it started may
   * live on until `kill`.
   */
  readonly exited: Promise<Exit>
  readonly #command: string
  readonly #clock: Clock
  readonly #undertaker: ChildProcess
  readonly #lines: string[] = []
  readonly #watchers = new Set<() => void>()
  #exit: Exit | undefined
  #outputRead = false

  static async start(command: string, options: StartOptions): Promise<RunningProcess> {
    const { args = [], cwd, env, uid, gid, clock = systemClock } = options
    const child = spawn(command, args, {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
      ...(cwd !== undefined && { cwd }),
      ...(uid !== undefined && { uid }),
      ...(gid !== undefined && { gid }),
    })
    await once(child, 'spawn')
    if (child.pid === undefined) throw new Error(`${command} was not started`)
    return new RunningProcess(command, child, child.pid, clock)
  }

  private constructor(command: string, child: ChildProcess, pid: number, clock: Clock) {
    this.pid = pid
    this.#command = command
    this.#clock = clock
    this.#undertaker = startUndertaker(pid)
    for (const stream of [child.stdout, child.stderr]) this.#capture(stream)
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#exit = { code, signal }
        if (!send(-pid, 0)) this.#undertaker.kill('SIGKILL')
        const exit = this.#exit
        // What it left behind may hold its output open; what it printed itself is there by then.
        const timer = clock.setTimer(REST_OF_OUTPUT_MS, () => resolve(exit), { keepAlive: true })
        child.once('close', () => {
          timer.cancel()
          resolve(exit)
        })
      })
    })
    child.once('close', () => {
      this.#outputRead = true
      this.#tellWatchers()
    })
  }

  /** Every line of both outputs so far, in the order of arrival. */
  get lines(): readonly string[] {
    return this.#lines
  }

  /**
   * The first line that matches, already printed or still to come.
   *
   * @param withinMs a bound for a hung process, not an expectation; default one minute
   * @throws Error with the whole output when the process ends first, or the bound is reached
   */
  waitForLine(pattern: RegExp, withinMs = 60_000): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      let seen = 0
      const settle = (then: () => void): void => {
        this.#watchers.delete(look)
        timer.cancel()
        then()
      }
      const giveUp = (why: string): void => settle(() => reject(this.#failure(pattern, why)))
      const look = (): void => {
        for (; seen < this.#lines.length; seen += 1) {
          const match = pattern.exec(this.#lines[seen] ?? '')
          if (match !== null) return settle(() => resolve(match))
        }
        if (this.#outputRead) giveUp(`it ended with ${JSON.stringify(this.#exit)}`)
      }
      const timer = this.#clock.setTimer(withinMs, () => giveUp(`not within ${withinMs} ms`), {
        keepAlive: true,
      })
      this.#watchers.add(look)
      look()
    })
  }

  /** Sends a signal to the process alone. Does nothing once it has ended. */
  signal(name: NodeJS.Signals): void {
    if (this.#exit === undefined) send(this.pid, name)
  }

  /** Freezes the whole group (SIGSTOP): the paused holder. */
  pause(): void {
    send(-this.pid, 'SIGSTOP')
  }

  /** Lets a frozen group go on where it was (SIGCONT). */
  resume(): void {
    send(-this.pid, 'SIGCONT')
  }

  /** `kill -9` of the whole group, paused or not; then waits for the end. Idempotent. */
  kill(): Promise<Exit> {
    send(-this.pid, 'SIGKILL')
    this.#undertaker.kill('SIGKILL')
    return this.exited
  }

  /** Asks the process to end (SIGTERM), and kills its group when it has not within the bound. */
  async stop(withinMs = 10_000): Promise<Exit> {
    const timer = this.#clock.setTimer(withinMs, () => void this.kill(), { keepAlive: true })
    try {
      this.signal('SIGTERM')
      return await this.exited
    } finally {
      timer.cancel()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }

  #capture(stream: Readable | null): void {
    if (stream === null) return
    createInterface({ input: stream }).on('line', (line) => {
      this.#lines.push(line)
      this.#tellWatchers()
    })
  }

  #tellWatchers(): void {
    for (const watcher of this.#watchers) watcher()
  }

  #failure(pattern: RegExp, why: string): Error {
    const output = this.#lines.map((line) => `  ${line}\n`).join('')
    return new Error(`${this.#command} printed no line like ${pattern}: ${why}\n${output}`)
  }
}

/** False when there is no such process (or group, for a negative `pid`) any more. */
function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}

/**
 * Waits for the end of its input, which comes when this process dies in whatever way, SIGKILL
 * included; then kills the group.
 */
function startUndertaker(group: number): ChildProcess {
  const script = 'read -r _; kill -s KILL -- "-$1"'
  const undertaker = spawn('sh', ['-c', script, 'undertaker', String(group)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  undertaker.unref()
  return undertaker
}
