import { execFile } from 'node:child_process'
import { mkdir, open, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { promisify } from 'node:util'
import type { Account } from './account.ts'

const run = promisify(execFile)

export function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

/** Makes a folder and its parents; the new ones can be entered by everybody, whatever the umask. */
export async function makeFolder(folder: string): Promise<void> {
  const created = await mkdir(folder, { recursive: true })
  if (created !== undefined && process.platform !== 'win32') {
    await run('chmod', ['-R', 'a+rX', created])
  }
}

/** Makes what was renamed into `folder` survive a power cut. Windows can sync no folder. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(folder)
  await handle.sync()
  await handle.close()
}

/** Whether the account can get into `folder`, or into its nearest ancestor that exists. */
export async function canReach(folder: string, account: Account | undefined): Promise<boolean> {
  if (account === undefined) return true
  try {
    await run('/bin/sh', ['-c', 'cd -- "$1"', 'sh', await nearestExisting(folder)], {
      ...account,
      cwd: '/',
    })
    return true
  } catch {
    return false
  }
}

async function nearestExisting(folder: string): Promise<string> {
  let candidate = resolve(folder)
  while (!(await exists(candidate))) candidate = dirname(candidate)
  return candidate
}
