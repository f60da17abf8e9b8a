import { type ChildProcess, spawn } from 'node:child_process'
import type { Clock } from '@dlock/system'
import { CommandFailure, exitCodes, signalStatus } from './exit-codes.ts'

/** How often to look whether a group is gone: nobody tells a process that is not the parent. */
const LOOK_EVERY_MS = 10

/**
 * A command, and every process that it starts and that does not leave its group. None of them
 * outlives this process: when it is killed in whatever way, SIGKILL included, the kernel closes the
 * pipe that an undertaker reads, and the undertaker kills the group.
 */
export class ProcessGroup {
  /** @throws CommandFailure when the command, or its undertaker, cannot be started: none is left */
  readonly started: Promise<unknown>
  /** The exit status of the command itself; 128 + n when signal n ended it. */
  readonly ended: Promise<number>
  readonly #id: number | undefined
  readonly #clock: Clock
  readonly #undertaker: ChildProcess | undefined

  constructor([command = '', ...args]: readonly string[], env: NodeJS.ProcessEnv, clock: Clock) {
    const leader = spawn(command, args, { detached: true, stdio: 'inherit', env })
    this.#clock = clock
    this.#id = leader.pid
    this.#undertaker = this.#id === undefined ? undefined : startUndertaker(this.#id)
    this.started = Promise.all([
      isStarted(leader, (error) => whyNotStarted(command, error)),
      this.#undertaker && isStarted(this.#undertaker, (error) => this.#unwatched(error)),
    ])
    this.ended = new Promise((resolve) => {
      leader.once('exit', (code, signal) => resolve(code ?? signalStatus(signal)))
    })
  }

  signal(name: NodeJS.Signals): void {
    this.#send(name)
  }

  /**
   * Ends whoever is left: SIGTERM, and SIGKILL when `patience` settles. Resolves when the group is
   * gone, or was killed.
   */
  async end(patience: Promise<unknown>): Promise<void> {
    this.#send('SIGTERM')
    this.#send('SIGCONT')
    let impatient = false
    const kill = patience.then(() => {
      impatient = true
    })
    while (this.#isThere() && !impatient) await Promise.race([this.#pause(), kill])
    this.#send('SIGKILL')
    await this.ended
    this.#undertaker?.kill('SIGKILL')
  }

  /** Without an undertaker the command might go on after this process: it does not go on at all. */
  #unwatched({ message }: Error): CommandFailure {
    this.#send('SIGKILL')
    return new CommandFailure(exitCodes.failed, `no undertaker for the command: ${message}`)
  }

  #isThere(): boolean {
    return this.#send(0)
  }

  /** @returns whether there was anybody to send it to */
  #send(signal: NodeJS.Signals | 0): boolean {
    if (this.#id === undefined) return false
    try {
      return process.kill(-this.#id, signal)
    } catch (error) {
      // EPERM: somebody is there who has become another user.
      return (error as NodeJS.ErrnoException).code === 'EPERM'
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.setTimer(LOOK_EVERY_MS, resolve, { keepAlive: true })
    })
  }
}

/** In a session of its own, so that what ends the group or the terminal does not end it. */
function startUndertaker(group: number): ChildProcess {
  const script = 'read -r _; kill -s KILL -- "-$1"'
  const undertaker = spawn('/bin/sh', ['-c', script, 'dlock-undertaker', String(group)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  undertaker.unref()
  return undertaker
}

function isStarted(child: ChildProcess, why: (error: Error) => CommandFailure): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', (error) => reject(why(error)))
  })
}

function whyNotStarted(command: string, { code, message }: NodeJS.ErrnoException): CommandFailure {
  if (code === 'ENOENT') {
    return new CommandFailure(exitCodes.notFound, `${command}: there is no such command`)
  }
  return new CommandFailure(exitCodes.cannotRun, `${command} cannot be run: ${message}`)
}
