import {
  type AuditedRevocation,
  ContentionError,
  checkFencingToken,
  checkKey,
  checkOperator,
  checkReason,
  LockOutcome,
} from '@dlock/lock-api'
import type { Executor } from './execute.ts'
import { MINT, parseToken } from './fencing-token.ts'
import { grantLives, VACANT } from './live.ts'
import { lockTimeout, statement } from './statement.ts'
import { ANNOUNCE } from './waiting.ts'

/**
 * The floor is a token of its own that nobody is granted: a guard that admitted the holder goes on
 * accepting the holder's own token (decision 4). The vacant row keeps it, as the highest number of
 * the key. The grant is the one that was seen, or nothing happens.
 */
const REVOKE = statement(
  'revoke',
  `
  WITH held AS MATERIALIZED (
    SELECT e.lock_key, e.owner_id, e.fencing_token FROM lock_entry AS e
    WHERE e.lock_key = $1 AND ${grantLives('e')}
  ), revoked AS (
    UPDATE lock_entry AS e SET fencing_token = ${MINT}, expires_at = ${VACANT}
    FROM held AS h, ${lockTimeout('$5')}
    WHERE e.lock_key = h.lock_key AND e.fencing_token = h.fencing_token AND e.expires_at > now()
      AND h.fencing_token = coalesce($4::bigint, h.fencing_token)
    RETURNING e.lock_key, e.fencing_token AS floor, e.wanted
  ), audited AS (
    INSERT INTO lock_revocation
      (lock_key, prev_owner, prev_token, new_token_floor, operator, reason, revoked_at)
    SELECT h.lock_key, h.owner_id, h.fencing_token, r.floor, $2, $3, now()
    FROM held AS h JOIN revoked AS r ON r.lock_key = h.lock_key
    RETURNING lock_key, revocation_id
  )
  SELECT h.owner_id, h.fencing_token::text, r.floor::text, a.revocation_id::text, r.announced
  FROM held AS h
  LEFT JOIN (SELECT lock_key, floor, ${ANNOUNCE} AS announced FROM revoked) AS r USING (lock_key)
  LEFT JOIN audited AS a USING (lock_key)`,
)

/** How often to look again when the grant seen was gone, and perhaps another there, by the update. */
const MAX_TRIES = 5

export async function revoke(
  executor: Executor,
  key: string,
  operator: string,
  reason: string,
  expectedToken: bigint | undefined,
): Promise<AuditedRevocation> {
  checkKey(key)
  checkOperator(operator)
  checkReason(reason)
  if (expectedToken !== undefined) checkFencingToken(expectedToken, 'expectedToken')
  const values = [key, operator, reason, expectedToken?.toString() ?? null, executor.lockTimeout()]
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const [row] = await executor.run(REVOKE, values)
    if (row === undefined) return { kind: 'not-held' }
    const [ownerId, tokenText, floor, revocationId] = row
    const token = parseToken(tokenText ?? '')
    if (floor && revocationId) {
      const outcome = new LockOutcome(key, true, ownerId ?? '', token, parseToken(floor))
      return { kind: 'revoked', outcome, revocationId }
    }
    if (expectedToken !== undefined && expectedToken !== token) {
      return { kind: 'stale', currentToken: token }
    }
  }
  throw new ContentionError('the grant changed hands at every attempt; nothing was revoked')
}
