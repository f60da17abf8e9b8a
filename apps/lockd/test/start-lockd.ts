import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type RunningProcess, type StartOptions, startProcess } from '@dlock/faults'
import { onTestFinished } from 'vitest'

const lockd = fileURLToPath(new URL('../bin/lockd.js', import.meta.url))

/** As a user starts it, in a folder of its own. Killed, if it has not ended, with the test. */
export async function startLockd(
  args: readonly string[],
  options: StartOptions = {},
): Promise<RunningProcess> {
  const started = await startProcess(process.execPath, { ...options, args: [lockd, ...args] })
  onTestFinished(async () => void (await started.kill()))
  return started
}

/** Starts one on a free port. @returns it, once it listens, and where */
export async function startListening(
  args: readonly string[],
  options: StartOptions = {},
): Promise<{ readonly process: RunningProcess; readonly url: string }> {
  const started = await startLockd(['--lock-listen-port', '0', ...args], options)
  const [, url = ''] = await started.waitForLine(/"event":"server_listening".*"url":"([^"]+)"/)
  return { process: started, url }
}

/** Enterable by the user that PostgreSQL runs as; gone when the test is over. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'dlock-test-'))
  await chmod(folder, 0o755)
  onTestFinished(() =>
    rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }),
  )
  return folder
}
