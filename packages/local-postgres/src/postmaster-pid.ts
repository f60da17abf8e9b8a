import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

export interface Postmaster {
  readonly pid: number
  /** `starting`, `ready`, `stopping`; empty while it is not written yet. */
  readonly status: string
}

/** What the server on the cluster says of itself; `undefined` when none runs or has crashed. */
export async function readPostmaster(data: string): Promise<Postmaster | undefined> {
  const text = await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '')
  const lines = text.split('\n')
  const pid = Number.parseInt(lines[0] ?? '', 10)
  if (Number.isNaN(pid) || !isAlive(pid)) return undefined
  return { pid, status: lines[7]?.trim() ?? '' }
}

/** Whether there is a process of this number, ours or another's. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
