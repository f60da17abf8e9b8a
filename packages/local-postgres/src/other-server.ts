import type { Clock } from '@dlock/system'
import { readPostmaster } from './postmaster-pid.ts'

/** By then the supervisor of an owner that was killed just now has begun to stop its server. */
const BEGIN_WITHIN_MS = 2_000
/** By then it has ended it. */
const END_WITHIN_MS = 20_000
const LOOK_EVERY_MS = 50

/**
 * Waits for the server that runs on the cluster to end, as the one of a killed owner does.
 *
 * @throws Error that names its process when it does not look like ending
 */
export async function awaitEnd(data: string, clock: Clock): Promise<void> {
  const startedAt = clock.monotonicNanos()
  for (;;) {
    await pause(LOOK_EVERY_MS, clock)
    const other = await readPostmaster(data)
    if (other === undefined) return
    const waitedMs = Number(clock.monotonicNanos() - startedAt) / 1e6
    const patienceMs = other.status === 'stopping' ? END_WITHIN_MS : BEGIN_WITHIN_MS
    if (waitedMs > patienceMs) {
      throw new Error(
        `the cluster in ${data} is in use by another PostgreSQL, process ${other.pid}`,
      )
    }
  }
}

function pause(delayMs: number, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(delayMs, resolve, { keepAlive: true })
  })
}
