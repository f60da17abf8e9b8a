import { exists, get, nested, prefixEnd, unchangedSince } from './client/txn.ts'
import type { EtcdState } from './etcd-state.ts'

/** A page of the index, and of the locks checked in one transaction. */
const PAGE = 100

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
  let from = prefix
  for (;;) {
    const page = await state.client.range({
      key: Buffer.from(from),
      rangeEnd: prefixEnd(prefix),
      limit: String(PAGE),
    })
    const entries = page.items.map(({ key, modRevision }) => ({
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
    const last = page.items.at(-1)
    if (!page.more || last === undefined) return live
    from = `${last.key}\0`
  }
}
