import { Buffer } from 'node:buffer'
import type {
  ListingCapability,
  LockInfo,
  LockQuery,
  Page,
  PageQuery,
  Revocation,
  SessionInfo,
} from '@dlock/lock-api'
import type { MemoryState, Session } from './memory-state.ts'

const MAX_PAGE = 1_000

/** A cursor is the place of the page's last item: a key, or a position. */
export function listing(state: MemoryState): ListingCapability {
  return {
    listLocks: async (query) => listLocks(state, query),
    listSessions: async (query) => listSessions(state, query),
    listRevocations: async (query) => listRevocations(state, query),
  }
}

function listLocks(state: MemoryState, { prefix, cursor, limit }: LockQuery): Page<LockInfo> {
  const grants = [...state.grants.values()]
    .filter(({ key }) => key.startsWith(prefix))
    .filter(({ key }) => cursor === undefined || compareUtf8(key, cursor) > 0)
    .filter(({ key }) => state.liveGrant(key) !== undefined)
    .sort((a, b) => compareUtf8(a.key, b.key))
  return page(
    grants,
    limit,
    (grant) => grant.key,
    (grant) => state.infoOf(grant),
  )
}

function listSessions(state: MemoryState, { cursor, limit }: PageQuery): Page<SessionInfo> {
  const after = position(cursor)
  const sessions = [...state.sessions.values()].filter(
    (session) => session.ordinal > after && state.isAhead(session.endsAtNanos),
  )
  return page(
    sessions,
    limit,
    (session) => `${session.ordinal}`,
    (session) => infoOf(state, session),
  )
}

function listRevocations(state: MemoryState, { cursor, limit }: PageQuery): Page<Revocation> {
  const after = position(cursor)
  const entries = [...state.revocations.slice(after).entries()]
  return page(
    entries,
    limit,
    ([index]) => `${after + index + 1}`,
    ([, revocation]) => revocation,
  )
}

function infoOf(state: MemoryState, session: Session): SessionInfo {
  return {
    sessionRef: `session-${session.ordinal}`,
    ownerId: session.ownerId,
    createdAt: session.createdAt,
    expiresAt: state.wallTimeOf(session.endsAtNanos),
    heldLockCount: state.liveGrantsOf(session.sessionId).length,
  }
}

function page<Item, Shown>(
  rest: readonly Item[],
  limit: number,
  placeOf: (item: Item) => string,
  show: (item: Item) => Shown,
): Page<Shown> {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE) {
    throw new RangeError(`limit must be a whole number from 1 to ${MAX_PAGE}, got ${limit}`)
  }
  const items = rest.slice(0, limit)
  const last = items.at(-1)
  const more = last !== undefined && rest.length > limit
  return { items: items.map(show), nextCursor: more ? placeOf(last) : undefined }
}

function position(cursor: string | undefined): number {
  if (cursor === undefined) return 0
  if (!/^\d{1,15}$/.test(cursor)) {
    throw new RangeError(`cursor must come from the page before, got ${JSON.stringify(cursor)}`)
  }
  return Number(cursor)
}

/** UTF-16 order is not UTF-8 order: it puts what is beyond U+FFFF before U+E000. */
function compareUtf8(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
