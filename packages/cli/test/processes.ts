import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type RunningProcess, startProcess } from '@dlock/faults'
import { expect, onTestFinished } from 'vitest'

export const dlock: string = fileURLToPath(new URL('../bin/dlock.js', import.meta.url))

/** dlock as a user starts it. */
export async function startDlock(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<RunningProcess> {
  const started = await startProcess(process.execPath, { args: [dlock, ...args], env })
  onTestFinished(async () => void (await started.kill()))
  return started
}

/** A folder of its own, gone when the test is over. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'dlock-test-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/**
 * A command that ignores SIGTERM and has children that ignore it, too. It prints `family` and every
 * process id, when all are there.
 */
export const stubborn = [
  'sh',
  '-c',
  `trap '' TERM INT; sleep 600 & one=$!; sh -c 'sleep 600 & echo "family $0 $1 $$ $!"; wait' $$ $one`,
]

/** The process ids that `stubborn` printed; whoever is left is killed when the test is over. */
export async function familyOf(started: RunningProcess): Promise<number[]> {
  const [line] = await started.waitForLine(/^family .*$/)
  const pids = line.split(' ').slice(1).map(Number)
  onTestFinished(() => {
    for (const pid of pids) if (isAlive(pid)) process.kill(pid, 'SIGKILL')
  })
  expect(pids).toHaveLength(4)
  expect(pids.filter(isAlive)).toEqual(pids)
  return pids
}

/** Not a zombie: the machine's first process may be slow to bury what became its child. */
export function aliveOf(pids: readonly number[]): number[] {
  return pids.filter((pid) => {
    const ps = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
    return /^[^ZX\s]/.test(ps.stdout)
  })
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
