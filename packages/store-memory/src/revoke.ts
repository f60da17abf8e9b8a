import {
  type AuditedRevocation,
  checkFencingToken,
  checkKey,
  checkOperator,
  checkReason,
  LockOutcome,
} from '@dlock/lock-api'
import type { MemoryState } from './memory-state.ts'

export function revoke(
  state: MemoryState,
  key: string,
  operator: string,
  reason: string,
  expectedToken: bigint | undefined,
): AuditedRevocation {
  checkKey(key)
  checkOperator(operator)
  checkReason(reason)
  if (expectedToken !== undefined) checkFencingToken(expectedToken, 'expectedToken')
  const grant = state.liveGrant(key)
  if (grant === undefined) return { kind: 'not-held' }
  if (expectedToken !== undefined && expectedToken !== grant.fencingToken) {
    return { kind: 'stale', currentToken: grant.fencingToken }
  }
  // The floor is a token of its own that nobody is granted. The holder's own token would not do: a
  // guard that the holder has been admitted to goes on accepting an equal token (decision 4).
  const newTokenFloor = state.tokens.mint()
  const revocationId = state.ids.uuid()
  state.revocations.push({
    revocationId,
    key,
    previousOwnerId: grant.ownerId,
    previousToken: grant.fencingToken,
    newTokenFloor,
    operator,
    reason,
    revokedAt: state.clock.now(),
  })
  state.grants.delete(key)
  state.announce([grant])
  const outcome = new LockOutcome(key, true, grant.ownerId, grant.fencingToken, newTokenFloor)
  return { kind: 'revoked', outcome, revocationId }
}
