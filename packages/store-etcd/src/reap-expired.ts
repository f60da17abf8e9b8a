import { checkInstant } from '@dlock/lock-api'
import { absent, nested, remove, unchangedSince } from './client/txn.ts'
import type { EtcdState } from './etcd-state.ts'
import { pagesUnder } from './pages.ts'
import { lockRecordOf, sessionRecordOf } from './records.ts'
import { sweepCarrier } from './sessions.ts'

/**
 * etcd itself removes what has expired, but for the lock records that an expired marker leaves
 * behind. A marker that is gone had expired by etcd's clock; when, nobody wrote down, but never
 * before the lease it was granted with was over, so `now` only spares what is younger than that.
 */
export async function reapExpired(state: EtcdState, now: Date): Promise<number> {
  const reaped = await reapLocks(state, checkInstant(now, 'now'))
  await sweepDeadSessions(state)
  return reaped
}

async function reapLocks(state: EtcdState, nowMs: number): Promise<number> {
  let reaped = 0
  const prefix = state.keys.locks('')
  for await (const page of pagesUnder(state.client, prefix)) {
    const locks = page.flatMap((stored) => {
      const parsed = state.keys.parse(stored.key)
      if (parsed?.kind !== 'lock') return []
      const { acquiredAtMs, ttlMs } = lockRecordOf(stored)
      return acquiredAtMs + ttlMs <= nowMs ? [{ key: parsed.name, stored }] : []
    })
    const answer = await state.client.txn({
      compare: [],
      success: locks.map(({ key, stored }) =>
        nested({
          compare: [
            absent(state.keys.ttl(key)),
            unchangedSince(state.keys.lock(key), stored.modRevision),
          ],
          success: [
            remove(state.keys.lock(key)),
            remove(state.keys.held(lockRecordOf(stored).sessionId, key)),
          ],
          failure: [],
        }),
      ),
      failure: [],
    })
    reaped += locks.filter((_, index) => answer.nested(index).succeeded).length
  }
  return reaped
}

/** Those that ended while no process of ours was watching. */
async function sweepDeadSessions(state: EtcdState): Promise<void> {
  const prefix = state.keys.sessionRecord('')
  for await (const page of pagesUnder(state.client, prefix)) {
    const answer = await state.client.txn({
      compare: [],
      success: page.map(({ key }) =>
        nested({
          compare: [absent(state.keys.session(key.slice(prefix.length)))],
          success: [],
          failure: [],
        }),
      ),
      failure: [],
    })
    for (const [index, stored] of page.entries()) {
      if (answer.nested(index).succeeded) await sweepCarrier(state, sessionRecordOf(stored).carrier)
    }
  }
}
