import type { LockClient, LockClientSession } from '@dlock/lock-client'
import { KEYS_PER_WORKER } from './bare-statements.ts'
import { Exclusion } from './exclusion.ts'
import { microseconds, type Sample } from './sample.ts'

const TTL_MS = 30_000

/**
 * `workers` tasks of one session, each acquiring and releasing keys of its own, one after the
 * other, for `windowMs`.
 */
export async function runCycles(
  client: LockClient,
  workers: number,
  windowMs: number,
  sample: Sample,
): Promise<void> {
  const exclusion = new Exclusion()
  await using session = await client.openSession('bench')
  const start = process.hrtime.bigint()
  const end = start + BigInt(Math.round(windowMs * 1e6))
  const tasks = Array.from({ length: workers }, (_, worker) =>
    cycle(session, `cycle:${worker}`, end, sample, exclusion),
  )
  await Promise.all(tasks)
  sample.lasted(microseconds(start, process.hrtime.bigint()) / 1e6)
  exclusion.check(`${workers} workers`)
}

async function cycle(
  session: LockClientSession,
  prefix: string,
  end: bigint,
  sample: Sample,
  exclusion: Exclusion,
): Promise<void> {
  let now = process.hrtime.bigint()
  for (let turn = 0; now < end; turn += 1) {
    const key = `${prefix}:${turn % KEYS_PER_WORKER}`
    const lock = await session.acquire(key, { ttlMs: TTL_MS })
    if (lock === undefined) throw new Error(`${key} was held, and nobody else wants it`)
    exclusion.granted(key, lock.fencingToken)
    exclusion.released(key)
    await session.release(lock)
    const before = now
    now = process.hrtime.bigint()
    sample.record(microseconds(before, now))
  }
}
