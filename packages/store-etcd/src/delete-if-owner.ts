import { checkFencingToken, checkKey } from '@dlock/lock-api'
import { remove, unchangedSince } from './client/txn.ts'
import type { EtcdState } from './etcd-state.ts'
import { seeGrant } from './extend.ts'

export async function deleteIfOwner(
  state: EtcdState,
  key: string,
  fencingToken: bigint,
): Promise<boolean> {
  checkKey(key)
  checkFencingToken(fencingToken)
  let grant = state.grants.get(key)
  if (grant?.fencingToken !== fencingToken) grant = await seeGrant(state, key)
  if (grant?.fencingToken !== fencingToken) return false
  const { keys } = state
  const answer = await state.proposals.submit(
    {
      // The record was written once, by the grant: its revision is the token, and the whole test.
      compare: [unchangedSince(keys.lock(key), grant.lockRevision)],
      success: [
        remove(keys.lock(key)),
        remove(keys.ttl(key)),
        remove(keys.held(grant.sessionId, key)),
      ],
      failure: [],
    },
    [key],
  )
  state.grants.delete(key)
  return answer.succeeded
}
