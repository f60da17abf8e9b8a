import {
  checkFencingToken,
  checkKey,
  checkOwnerId,
  checkSessionId,
  checkTtlMs,
  type NextHolder,
  type Transfer,
} from '@dlock/lock-api'
import type { Kind } from './coalesce.ts'
import { MINT } from './fencing-token.ts'
import { epochMs, leaseEnd, sessionLives, VACANT } from './live.ts'
import { isSessionId } from './sessions.ts'
import { askStatement } from './statement.ts'
import { handleOf } from './try-insert.ts'
import { ANNOUNCE } from './waiting.ts'

export interface HandOver {
  readonly key: string
  readonly fencingToken: bigint
  readonly next: NextHolder
}

/** In the place of an id that this store never gave. No session has it. */
const NOBODY = '00000000-0000-0000-0000-000000000000'

/** The mark that somebody waits passes to the next grant: whoever waits elsewhere waits on. */
const TRANSFER = askStatement(
  'transfer',
  { key: 'text', token: 'bigint', owner_id: 'text', session_id: 'uuid', ttl_ms: 'bigint' },
  (asked) => `
  WITH asked AS MATERIALIZED (
    SELECT a.*, ${leaseEnd('a.ttl_ms')} AS expires_at, ${sessionLives('a.session_id')} IS TRUE AS lives
    FROM ${asked} AS a
  )
  UPDATE lock_entry AS e SET
    owner_id = CASE WHEN a.lives THEN a.owner_id ELSE e.owner_id END,
    session_id = CASE WHEN a.lives THEN a.session_id ELSE e.session_id END,
    fencing_token = CASE WHEN a.lives THEN ${MINT} ELSE e.fencing_token END,
    acquired_at = CASE WHEN a.lives THEN now() ELSE e.acquired_at END,
    expires_at = CASE WHEN a.lives THEN a.expires_at ELSE ${VACANT} END
  FROM asked AS a
  WHERE e.lock_key = a.key AND e.fencing_token = a.token AND e.expires_at > ${VACANT}
  RETURNING e.lock_key, CASE WHEN a.lives THEN e.fencing_token::text END, ${epochMs('e.expires_at')},
    CASE WHEN NOT a.lives THEN ${ANNOUNCE} END`,
)

export const TRANSFERS: Kind<HandOver, Transfer> = {
  statement: TRANSFER,
  keyOf: ({ key }) => key,
  row: ({ key, fencingToken, next: { ownerId, sessionId, ttlMs } }) => [
    key,
    String(fencingToken),
    ownerId,
    isSessionId(sessionId) ? sessionId : NOBODY,
    String(ttlMs),
  ],
  answers(asks, rows, sentNanos) {
    const byKey = new Map(rows.map((row) => [row[0], row]))
    return asks.map(({ key, next }) => {
      const row = byKey.get(key)
      if (row === undefined) return { released: false, granted: undefined }
      const [, token, ends] = row
      if (!token) return { released: true, granted: undefined }
      return { released: true, granted: handleOf({ key, ...next }, token, ends, sentNanos) }
    })
  },
}

export function checkHandOver({ key, fencingToken, next }: HandOver): void {
  checkKey(key)
  checkFencingToken(fencingToken)
  checkOwnerId(next.ownerId, 'next.ownerId')
  checkSessionId(next.sessionId, 'next.sessionId')
  checkTtlMs(next.ttlMs, 'next.ttlMs')
}
