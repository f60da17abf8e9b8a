import type {
  ListingCapability,
  LockInfo,
  LockQuery,
  Page,
  PageQuery,
  Revocation,
  SessionInfo,
} from '@dlock/lock-api'
import type { Executor, Row } from './execute.ts'
import { parseToken } from './fencing-token.ts'
import { epochMs, grantLives, instant } from './live.ts'
import { INFO_COLUMNS, infoOf } from './read.ts'
import { type Statement, statement } from './statement.ts'

const MAX_PAGE = 1_000
const A_KEY = /^[^\p{Cc}\p{Cs}]+$/u

/**
 * By bytes, as the column is collated. What begins with the prefix lies between it and it followed
 * by as many of the last character as a key has room for: exact, and one range of the index.
 */
const LOCKS = statement(
  'list_locks',
  `
  SELECT ${INFO_COLUMNS} FROM lock_entry AS e
  WHERE e.lock_key >= $1 AND e.lock_key <= $1 || repeat(chr(1114111), 128)
    AND ($2::text IS NULL OR e.lock_key > $2::text) AND ${grantLives('e')}
  ORDER BY e.lock_key LIMIT $3::int`,
)

/** Names a session to people. Nobody gets back from it to the id, which is a secret. */
const SESSION_REF = `left(encode(sha256(convert_to(s.session_id::text, 'UTF8')), 'hex'), 16)`

const SESSIONS = statement(
  'list_sessions',
  `
  SELECT s.session_ref, s.owner_id, ${epochMs('s.created_at')}, ${epochMs('s.expires_at')},
    (
      SELECT count(*)::text FROM lock_entry AS e
      WHERE e.session_id = s.session_id AND e.expires_at > now()
    )
  FROM (SELECT *, ${SESSION_REF} AS session_ref FROM lock_session AS s) AS s
  WHERE s.expires_at > now() AND ($1::text IS NULL OR s.session_ref > $1::text COLLATE "C")
  ORDER BY s.session_ref COLLATE "C" LIMIT $2::int`,
)

const REVOCATIONS = statement(
  'list_revocations',
  `
  SELECT revocation_id::text, lock_key, prev_owner, prev_token::text, new_token_floor::text,
    operator, reason,
    ${epochMs('revoked_at')}
  FROM lock_revocation
  WHERE $1::bigint IS NULL OR revocation_id > $1::bigint
  ORDER BY lock_revocation.revocation_id LIMIT $2::int`,
)

/** A cursor is the place of the page's last item: its key, its reference, its number. */
export function listing(executor: Executor): ListingCapability {
  return {
    listLocks: async ({ prefix, cursor, limit }: LockQuery): Promise<Page<LockInfo>> =>
      list(executor, LOCKS, [checkPrefix(prefix), checkCursor(cursor, A_KEY)], limit, infoOf),
    listSessions: async ({ cursor, limit }: PageQuery): Promise<Page<SessionInfo>> =>
      list(executor, SESSIONS, [checkCursor(cursor, /^[0-9a-f]{16}$/)], limit, sessionOf),
    listRevocations: async ({ cursor, limit }: PageQuery): Promise<Page<Revocation>> =>
      list(executor, REVOCATIONS, [checkCursor(cursor, /^\d{1,18}$/)], limit, revocationOf),
  }
}

/** One more is asked for than shown, to see whether there is a next page. */
async function list<Item>(
  executor: Executor,
  query: Statement,
  values: readonly (string | null)[],
  limit: number,
  itemOf: (row: Row) => Item,
): Promise<Page<Item>> {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE) {
    throw new RangeError(`limit must be a whole number from 1 to ${MAX_PAGE}, got ${limit}`)
  }
  const rows = await executor.run(query, [...values, String(limit + 1)])
  const shown = rows.slice(0, limit)
  const nextCursor = rows.length > limit ? (shown.at(-1)?.[0] ?? undefined) : undefined
  return { items: shown.map(itemOf), nextCursor }
}

/** A control character would be refused by the server, and not by name. */
function checkPrefix(prefix: string): string {
  if (typeof prefix !== 'string') {
    throw new TypeError(`prefix must be a string, got ${typeof prefix}`)
  }
  if (!/^[^\p{Cc}\p{Cs}]*$/u.test(prefix)) {
    throw new RangeError('prefix must hold no control character and no lone surrogate')
  }
  return prefix
}

function checkCursor(cursor: string | undefined, form: RegExp): string | null {
  if (cursor === undefined) return null
  if (!form.test(cursor)) {
    throw new RangeError(`cursor must come from the page before, got ${JSON.stringify(cursor)}`)
  }
  return cursor
}

function sessionOf([sessionRef, ownerId, created, expires, held]: Row): SessionInfo {
  return {
    sessionRef: sessionRef ?? '',
    ownerId: ownerId ?? '',
    createdAt: instant(created),
    expiresAt: instant(expires),
    heldLockCount: Number(held),
  }
}

function revocationOf(row: Row): Revocation {
  const [revocationId, key, previousOwnerId, token, floor, operator, reason, revokedAt] = row
  return {
    revocationId: revocationId ?? '',
    key: key ?? '',
    previousOwnerId: previousOwnerId ?? '',
    previousToken: parseToken(token ?? ''),
    newTokenFloor: parseToken(floor ?? ''),
    operator: operator ?? '',
    reason: reason ?? '',
    revokedAt: instant(revokedAt),
  }
}
