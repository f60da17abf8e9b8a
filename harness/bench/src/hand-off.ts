import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { BenchDatabase } from './bench-database.ts'
import { Exclusion } from './exclusion.ts'
import type { LibraryMode } from './library-mode.ts'
import { microseconds, type Sample } from './sample.ts'

const TTL_MS = 30_000
const WAIT_MS = 30_000

/** From a release to the grant of a waiter in the same process. */
export async function handOffHere(
  library: LibraryMode,
  windowMs: number,
  sample: Sample,
): Promise<void> {
  const key = 'hand-off:here'
  const exclusion = new Exclusion()
  await using first = await library.client.openSession('first')
  await using second = await library.client.openSession('second')
  const end = process.hrtime.bigint() + BigInt(Math.round(windowMs * 1e6))
  let [holder, waiter] = [first, second]
  let lock = await holder.acquire(key, { ttlMs: TTL_MS, maxWaitMs: WAIT_MS })
  while (lock !== undefined && process.hrtime.bigint() < end) {
    exclusion.granted(key, lock.fencingToken)
    const next = waiter.acquire(key, { ttlMs: TTL_MS, maxWaitMs: WAIT_MS })
    await until(() => library.engine.gauges().waiters > 0)
    exclusion.released(key)
    const released = process.hrtime.bigint()
    const [, granted] = await Promise.all([holder.release(lock), next])
    sample.record(microseconds(released, process.hrtime.bigint()))
    lock = granted
    ;[holder, waiter] = [waiter, holder]
  }
  if (lock === undefined) throw new Error('a hand-off took longer than the wait')
  exclusion.check('hand-off in one process')
}

/** What the other process says: it holds the key, since this reading of the machine's clock. */
export interface PeerGrant {
  readonly grantedNanos: string
  readonly fencingToken: string
}

/** From a release here to the grant of a waiter in another process. */
export async function handOffAcross(
  library: LibraryMode,
  database: BenchDatabase,
  windowMs: number,
  sample: Sample,
): Promise<void> {
  const key = 'hand-off:across'
  const exclusion = new Exclusion()
  const peer = fork(fileURLToPath(new URL('./hand-off-peer.js', import.meta.url)), [
    database.url,
    key,
  ])
  try {
    await once(peer, 'message')
    await using session = await library.client.openSession('here')
    const end = process.hrtime.bigint() + BigInt(Math.round(windowMs * 1e6))
    while (process.hrtime.bigint() < end) {
      const lock = await session.acquire(key, { ttlMs: TTL_MS, maxWaitMs: WAIT_MS })
      if (lock === undefined) throw new Error('the peer did not give the key back')
      exclusion.seen(key, lock.fencingToken)
      const answer = askPeer(peer)
      await until(() => database.isWanted(key))
      const released = process.hrtime.bigint()
      await session.release(lock)
      const { grantedNanos, fencingToken } = await answer
      exclusion.seen(key, BigInt(fencingToken))
      sample.record(microseconds(released, BigInt(grantedNanos)))
    }
    exclusion.check('hand-off across processes')
  } finally {
    const gone = once(peer, 'exit')
    peer.disconnect()
    await gone
  }
}

async function askPeer(peer: ChildProcess): Promise<PeerGrant> {
  const answer = once(peer, 'message')
  peer.send('acquire')
  return (await answer)[0] as PeerGrant
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise(setImmediate)
}
