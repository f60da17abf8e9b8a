import { checkOwnerId, checkSessionId, checkTtlMs, type SessionState } from '@dlock/lock-api'
import type { Ids } from '@dlock/system'
import type { Kind } from './coalesce.ts'
import type { Executor } from './execute.ts'
import { leaseEnd, sessionLives, VACANT } from './live.ts'
import { askStatement, lockTimeout, statement } from './statement.ts'
import { ANNOUNCE } from './waiting.ts'

/** The ids that this store gives. Anything else names no session, and must not reach a `uuid`. */
export function isSessionId(sessionId: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(sessionId)
}

const OPEN = statement(
  'open_session',
  `
  INSERT INTO lock_session (session_id, owner_id, created_at, expires_at)
  VALUES ($1, $2, now(), ${leaseEnd('$3::bigint')})`,
)

export async function openSession(
  executor: Executor,
  ids: Ids,
  ownerId: string,
  ttlMs: number,
): Promise<string> {
  checkOwnerId(ownerId)
  checkTtlMs(ttlMs)
  const sessionId = ids.uuid()
  await executor.run(OPEN, [sessionId, ownerId, String(ttlMs)])
  return sessionId
}

export interface Beat {
  readonly sessionId: string
  readonly ttlMs: number
}

/** An `UPDATE`, never an upsert: only a session that lives is prolonged. */
const HEARTBEAT = askStatement(
  'heartbeat',
  { key: 'uuid', ttl_ms: 'bigint' },
  (asked) => `
  UPDATE lock_session AS s SET expires_at = GREATEST(s.expires_at, ${leaseEnd('a.ttl_ms')})
  FROM ${asked} AS a
  WHERE s.session_id = a.key AND s.expires_at > now()
  RETURNING s.session_id::text`,
)

export const HEARTBEATS: Kind<Beat, boolean> = {
  statement: HEARTBEAT,
  keyOf: ({ sessionId }) => sessionId,
  row: ({ sessionId, ttlMs }) => [sessionId, String(ttlMs)],
  answers(asks, rows) {
    const alive = new Set(rows.map(([sessionId]) => sessionId))
    return asks.map(({ sessionId }) => alive.has(sessionId))
  },
}

/**
 * A closed session is forgotten at once. A grant that is being inserted for it at this moment may
 * be left behind; it is a dead session's, and so counts for nothing.
 */
const CLOSE = statement(
  'close_session',
  `
  WITH closed AS (
    DELETE FROM lock_session USING ${lockTimeout('$2')}
    WHERE session_id = $1::uuid
    RETURNING expires_at > now() AS lived
  ), freed AS (
    UPDATE lock_entry AS e SET expires_at = ${VACANT} FROM ${lockTimeout('$2')}
    WHERE e.session_id = $1::uuid AND e.expires_at > now()
    RETURNING e.lock_key, e.wanted
  )
  SELECT lock_key, ${ANNOUNCE} FROM freed WHERE (SELECT lived FROM closed)`,
)

export async function closeSession(executor: Executor, sessionId: string): Promise<number> {
  if (!isSessionId(checkSessionId(sessionId))) return 0
  return (await executor.run(CLOSE, [sessionId, executor.lockTimeout()])).length
}

/**
 * A dead session is made certain to stay dead, and its grants end with it. A heartbeat in flight is
 * waited for, and may prove it alive. A session of which there is no record is dead: its id was
 * read from a grant, and it was opened before that.
 */
const BURY = askStatement(
  'bury',
  { key: 'uuid' },
  (asked) => `
  WITH buried AS (
    UPDATE lock_session AS s SET expires_at = ${VACANT}, ended_at = now()
    FROM ${asked} AS a
    WHERE s.session_id = a.key AND s.expires_at <= now() AND s.ended_at IS NULL
    RETURNING s.session_id
  ), gone AS (
    SELECT a.key FROM ${asked} AS a
    WHERE NOT EXISTS (
      SELECT FROM lock_session AS s WHERE s.session_id = a.key AND s.ended_at IS NULL
    )
  )
  UPDATE lock_entry AS e SET expires_at = ${VACANT}
  WHERE e.expires_at > ${VACANT}
    AND e.session_id IN (SELECT session_id FROM buried UNION ALL SELECT key FROM gone)`,
)

export const BURIALS: Kind<string, undefined> = {
  statement: BURY,
  keyOf: (sessionId) => sessionId,
  row: (sessionId) => [sessionId],
  answers: (sessionIds) => sessionIds.map(() => undefined),
}

const LOCKS_OF = statement(
  'locks_of',
  `
  SELECT lock_key FROM lock_entry
  WHERE session_id = $1::uuid AND expires_at > now() AND ${sessionLives('$1::uuid')}`,
)

export async function locksOf(executor: Executor, sessionId: string): Promise<ReadonlySet<string>> {
  if (!isSessionId(checkSessionId(sessionId))) return new Set()
  const rows = await executor.run(LOCKS_OF, [sessionId])
  return new Set(rows.flatMap(([key]) => key ?? []))
}

const DESCRIBE = statement(
  'describe_session',
  `
  SELECT owner_id, ceil(date_part('epoch', expires_at - now()) * 1000)::text
  FROM (
    SELECT owner_id, GREATEST(expires_at, now()) AS expires_at FROM lock_session
    WHERE session_id = $1::uuid
  ) AS s`,
)

export async function describeSession(
  executor: Executor,
  sessionId: string,
): Promise<SessionState> {
  if (!isSessionId(checkSessionId(sessionId))) return { state: 'unknown' }
  const [row] = await executor.run(DESCRIBE, [sessionId])
  if (row === undefined) return { state: 'unknown' }
  const [ownerId, remainingMs] = row
  if (!ownerId || Number(remainingMs) === 0) return { state: 'expired' }
  return { state: 'live', ownerId, remainingMs: Number(remainingMs) }
}
