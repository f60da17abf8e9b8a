import process from 'node:process'
import type { RunningService } from './service.ts'

/**
 * Runs a service as a process of its own: says every mistake of its settings on standard error and
 * exits with 2; on SIGTERM or SIGINT finishes what is in flight and exits.
 */
export async function runProgram(
  start: (env: Readonly<Record<string, string | undefined>>) => Promise<RunningService>,
): Promise<void> {
  try {
    const service = await start(process.env)
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.once(signal, () => void service.close().then(() => process.exit(0)))
    }
  } catch (error) {
    console.error((error as Error).message)
    process.exitCode = 2
  }
}
