import { exists, get, nested, unchangedSince } from './client/txn.ts'
import type { EtcdState } from './etcd-state.ts'
import { pagesUnder } from './pages.ts'

/**
 * The keys of the session's live locks. The index may hold entries of locks that have ended since:
 * one counts only while the lock was not written again and its lease runs.
 */
export async function liveLocksOf(
  state: EtcdState,
  sessionId: string,
): Promise<ReadonlySet<string>> {
  const live = new Set<string>()
  const prefix = state.keys.held(sessionId)
  for await (const page of pagesUnder(state.client, prefix)) {
    const entries = page.map(({ key, modRevision }) => ({
      key: key.slice(prefix.length),
      modRevision,
    }))
    const answer = await state.client.txn({
      compare: [exists(state.keys.session(sessionId))],
      success: entries.map(({ key, modRevision }) =>
        nested({
          compare: [unchangedSince(state.keys.lock(key), modRevision), exists(state.keys.ttl(key))],
          success: [get(state.keys.lock(key))],
          failure: [],
        }),
      ),
      failure: [],
    })
    if (!answer.succeeded) return new Set()
    entries.forEach(({ key }, index) => {
      if (answer.nested(index).succeeded) live.add(key)
    })
  }
  return live
}
