import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Clock } from '@dlock/system'
import type { Account } from './account.ts'
import { plainEnv } from './cluster.ts'
import { readPostmaster } from './postmaster-pid.ts'

/** After a crash, recovery comes first; it takes as long as the log since the last checkpoint. */
const START_WITHIN_MS = 120_000
/** The supervisor needs 15 s at most; after this, it is frozen. */
const STOP_WITHIN_MS = 20_000
const REMEMBERED_LINES = 20

/** One postgres to run, under a supervisor that stops it when this process is gone. */
export interface Job {
  readonly binaries: string
  readonly data: string
  readonly account: Account | undefined
  readonly settings: Readonly<Record<string, string>>
  /** Removed by the supervisor once postgres has ended, even when its owner was killed. */
  readonly throwaway: string | undefined
  readonly onLog: ((line: string) => void) | undefined
  readonly clock: Clock
}

export interface Supervised {
  /** The postmaster's process id. */
  readonly pid: number
  /** Settles when postgres has ended, wanted or not, with its last words. */
  readonly ended: Promise<string>
  stop(): Promise<void>
}

/** postgres ended, or said nothing, instead of accepting connections. */
export class StartError extends Error {
  /** What it logged last. */
  readonly log: string

  constructor(why: string, log: string) {
    super(`${why}:\n${log}`)
    this.log = log
  }
}

/** Starts postgres; resolves when it accepts connections. */
export async function startSupervised(job: Job): Promise<Supervised> {
  const supervisor = spawnSupervisor(job)
  const lines: string[] = []
  const ready = new Promise<'ready'>((resolve) => {
    createInterface({ input: supervisor.stderr }).on('line', (line) => {
      lines.push(line)
      if (lines.length > REMEMBERED_LINES) lines.shift()
      if (line.includes('database system is ready to accept connections')) resolve('ready')
      job.onLog?.(line)
    })
  })
  // 'close' comes after the last line was read, 'exit' may come before.
  const ended = once(supervisor, 'close').then(() => lines.join('\n'))
  const stop = async (): Promise<void> => {
    keepAlive(supervisor, true)
    supervisor.stdin.end()
    const timer = job.clock.setTimer(STOP_WITHIN_MS, () => void killBoth(supervisor, job.data))
    await ended
    timer.cancel()
  }

  const outcome = await Promise.race([ready, ended, after(START_WITHIN_MS, job.clock)])
  if (outcome !== 'ready') {
    await stop()
    const why = outcome === 'late' ? `was not ready within ${START_WITHIN_MS} ms` : 'did not start'
    throw new StartError(`PostgreSQL ${why}`, lines.join('\n'))
  }
  keepAlive(supervisor, false)
  const postmaster = await readPostmaster(job.data)
  if (postmaster === undefined) {
    throw new StartError('PostgreSQL ended as soon as it had started', await ended)
  }
  return { pid: postmaster.pid, ended, stop }
}

async function killBoth(supervisor: Supervisor, data: string): Promise<void> {
  supervisor.kill('SIGKILL')
  const postmaster = await readPostmaster(data)
  if (postmaster !== undefined) process.kill(postmaster.pid, 'SIGKILL')
}

type Supervisor = ChildProcess & {
  stdin: NonNullable<ChildProcess['stdin']>
  stderr: NonNullable<ChildProcess['stderr']>
}

function spawnSupervisor(job: Job): Supervisor {
  const settings = Object.entries(job.settings).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ])
  const order = JSON.stringify({
    command: join(job.binaries, 'postgres'),
    args: ['-D', job.data, ...settings],
    env: plainEnv(),
    account: job.account,
    throwaway: job.throwaway,
  })
  const script = fileURLToPath(new URL('../bin/supervisor.js', import.meta.url))
  // Detached: Ctrl-C at a terminal reaches the owner, who stops postgres last.
  return spawn(process.execPath, [script, order], {
    detached: true,
    stdio: ['pipe', 'ignore', 'pipe'],
    env: plainEnv(),
  }) as Supervisor
}

/** A running postgres keeps its owner alive no longer than the owner's own work does. */
function keepAlive(supervisor: Supervisor, on: boolean): void {
  const verb = on ? 'ref' : 'unref'
  supervisor[verb]()
  for (const stream of [supervisor.stdin, supervisor.stderr]) {
    ;(stream as unknown as { ref(): void; unref(): void })[verb]()
  }
}

function after(delayMs: number, clock: Clock): Promise<'late'> {
  return new Promise((resolve) => {
    clock.setTimer(delayMs, () => resolve('late'))
  })
}
