import { checkKey, type LockInfo } from '@dlock/lock-api'
import { get, type KeyValue } from './client/txn.ts'
import type { EtcdState } from './etcd-state.ts'
import { type LockRecord, lockRecordOf } from './records.ts'

export async function read(state: EtcdState, key: string): Promise<LockInfo | undefined> {
  const grant = await readLive(state, checkKey(key))
  return grant === undefined ? undefined : state.infoOf(key, grant.lock, grant.ttl)
}

/** The two stored halves of a live grant, and what its session's marker says. */
export interface LiveGrant {
  readonly lock: KeyValue
  readonly record: LockRecord
  readonly ttl: KeyValue
  readonly session: KeyValue
}

/** The live grant of a key: its lock and its marker both exist, and its session's marker does. */
export async function readLive(state: EtcdState, key: string): Promise<LiveGrant | undefined> {
  const seen = state.grants.get(key)
  const answer = await state.client.txn({
    compare: [],
    success: [
      get(state.keys.lock(key)),
      get(state.keys.ttl(key)),
      ...(seen === undefined ? [] : [get(state.keys.session(seen.sessionId))]),
    ],
    failure: [],
  })
  const [lock, ttl] = [answer.got(0), answer.got(1)]
  if (lock === undefined || ttl === undefined) return undefined
  const record = lockRecordOf(lock)
  const session =
    seen?.sessionId === record.sessionId
      ? answer.got(2)
      : (await state.client.range({ key: Buffer.from(state.keys.session(record.sessionId)) }))
          .items[0]
  return session === undefined ? undefined : { lock, record, ttl, session }
}
