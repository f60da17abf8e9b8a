import { createHash } from 'node:crypto'
import {
  type ListingCapability,
  type LockInfo,
  type LockQuery,
  type Page,
  type PageQuery,
  type Revocation,
  type SessionInfo,
} from '@dlock/lock-api'
import { exists, get, type KeyValue, nested, prefixEnd } from './client/txn.ts'
import type { EtcdState } from './etcd-state.ts'
import { floorOf } from './fencing-token.ts'
import { liveLocksOf } from './locks-of.ts'
import { auditRecordOf, lockRecordOf, markerRecordOf, sessionRecordOf } from './records.ts'

const MAX_PAGE = 1_000
const PER_LOOK = 100

/** A cursor is the stored key of the page's last item, without the prefix that all share. */
export function listing(state: EtcdState): ListingCapability {
  const { keys } = state
  return {
    listLocks: (query: LockQuery): Promise<Page<LockInfo>> =>
      page(state, keys.locks(query.prefix), keys.locks(''), query, liveLocks),
    listSessions: (query: PageQuery): Promise<Page<SessionInfo>> =>
      page(state, keys.session(''), keys.session(''), query, sessions),
    listRevocations: (query: PageQuery): Promise<Page<Revocation>> =>
      page(state, keys.audit(''), keys.audit(''), query, revocations),
  }
}

/** What of these stored keys is shown; `undefined` for what is not an item or does not live. */
type Show<Item> = (
  state: EtcdState,
  stored: readonly KeyValue[],
) => Promise<readonly (Item | undefined)[]>

async function page<Item>(
  state: EtcdState,
  prefix: string,
  root: string,
  { cursor, limit }: PageQuery,
  show: Show<Item>,
): Promise<Page<Item>> {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE) {
    throw new RangeError(`limit must be a whole number from 1 to ${MAX_PAGE}, got ${limit}`)
  }
  const items: Item[] = []
  let last = ''
  let from = cursor === undefined ? prefix : `${root}${cursor}\0`
  for (;;) {
    const found = await state.client.range({
      key: Buffer.from(from < prefix ? prefix : from),
      rangeEnd: prefixEnd(prefix),
      limit: String(PER_LOOK),
    })
    const shown = await show(state, found.items)
    for (const [index, item] of shown.entries()) {
      if (item === undefined) continue
      if (items.length === limit) return { items, nextCursor: last.slice(root.length) }
      items.push(item)
      last = found.items[index]?.key ?? ''
    }
    const end = found.items.at(-1)
    if (!found.more || end === undefined) return { items, nextCursor: undefined }
    from = `${end.key}\0`
  }
}

const liveLocks: Show<LockInfo> = async (state, stored) => {
  const locks = stored.map((lock) => {
    const parsed = state.keys.parse(lock.key)
    return parsed?.kind === 'lock' ? { key: parsed.name, lock } : undefined
  })
  const live = locks.filter((entry) => entry !== undefined)
  const answer = await state.client.txn({
    compare: [],
    success: live.map(({ key, lock }) =>
      nested({
        compare: [exists(state.keys.session(lockRecordOf(lock).sessionId))],
        success: [get(state.keys.ttl(key))],
        failure: [],
      }),
    ),
    failure: [],
  })
  return locks.map((entry) => {
    if (entry === undefined) return undefined
    const ttl = answer.nested(live.indexOf(entry)).got(0)
    return ttl === undefined ? undefined : state.infoOf(entry.key, entry.lock, ttl)
  })
}

const sessions: Show<SessionInfo> = async (state, stored) => {
  const root = state.keys.session('')
  return await Promise.all(
    stored.map(async (session) => {
      const sessionId = session.key.slice(root.length)
      const [{ items }, held] = await Promise.all([
        state.client.range({ key: Buffer.from(state.keys.sessionRecord(sessionId)) }),
        liveLocksOf(state, sessionId),
      ])
      const [record] = items
      if (record === undefined) return undefined
      const { ownerId, expiresAtMs } = markerRecordOf(session)
      return {
        sessionRef: createHash('sha256').update(sessionId).digest('hex').slice(0, 12),
        ownerId,
        createdAt: new Date(sessionRecordOf(record).createdAtMs),
        expiresAt: new Date(expiresAtMs),
        heldLockCount: held.size,
      }
    }),
  )
}

const revocations: Show<Revocation> = async (state, stored) => {
  const root = state.keys.audit('')
  return stored.map((entry) => {
    const audit = auditRecordOf(entry)
    return {
      revocationId: entry.key.slice(root.length),
      key: audit.key,
      previousOwnerId: audit.previousOwnerId,
      previousToken: BigInt(audit.previousToken),
      newTokenFloor: floorOf(audit, entry.modRevision),
      operator: audit.operator,
      reason: audit.reason,
      revokedAt: new Date(audit.revokedAtMs),
    }
  })
}
