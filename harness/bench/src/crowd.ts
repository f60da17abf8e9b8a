import type { LockClient } from '@dlock/lock-client'
import { Exclusion } from './exclusion.ts'

export interface Crowd {
  readonly waiters: number
  handOffs: number
  seconds: number
  /** Grants of each waiter. */
  readonly shares: number[]
}

/** `waiters` sessions that all want one key, all the time, for `windowMs`. */
export async function runCrowd(
  client: LockClient,
  waiters: number,
  windowMs: number,
): Promise<Crowd> {
  const key = 'crowd'
  const exclusion = new Exclusion()
  const shares = Array.from({ length: waiters }, () => 0)
  const sessions = await Promise.all(
    shares.map((_, index) => client.openSession(`waiter-${index}`)),
  )
  const start = process.hrtime.bigint()
  const end = start + BigInt(Math.round(windowMs * 1e6))
  await Promise.all(
    sessions.map(async (session, index) => {
      while (process.hrtime.bigint() < end) {
        const lock = await session.acquire(key, { ttlMs: 30_000, maxWaitMs: 60_000 })
        if (lock === undefined) throw new Error('a waiter was not served within a minute')
        exclusion.granted(key, lock.fencingToken)
        if (process.hrtime.bigint() < end) shares[index] = (shares[index] ?? 0) + 1
        exclusion.released(key)
        await session.release(lock)
      }
    }),
  )
  await Promise.all(sessions.map((session) => session.close()))
  exclusion.check(`${waiters} waiters on one key`)
  const handOffs = shares.reduce((sum, share) => sum + share, 0)
  return { waiters, handOffs, seconds: windowMs / 1_000, shares }
}

/** The largest share over the smallest: 1 is even. */
export function unevenness({ shares }: Crowd): number {
  return Math.max(...shares) / Math.min(...shares)
}
