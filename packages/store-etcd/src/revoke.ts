import {
  type AuditedRevocation,
  ContentionError,
  checkFencingToken,
  checkKey,
  checkOperator,
  checkReason,
  LockOutcome,
} from '@dlock/lock-api'
import { exists, put, remove, type Txn, unchangedSince } from './client/txn.ts'
import type { EtcdState } from './etcd-state.ts'
import { floorOf, tokenOf } from './fencing-token.ts'
import { type LiveGrant, readLive } from './read.ts'
import { type AuditRecord, encode } from './records.ts'

const TRIES = 4

export async function revoke(
  state: EtcdState,
  key: string,
  operator: string,
  reason: string,
  expectedToken: bigint | undefined,
): Promise<AuditedRevocation> {
  checkKey(key)
  checkOperator(operator)
  checkReason(reason)
  if (expectedToken !== undefined) checkFencingToken(expectedToken, 'expectedToken')
  await state.epoch.requireServing()
  for (let tries = 0; tries < TRIES; tries += 1) {
    const grant = await readLive(state, key)
    if (grant === undefined) return { kind: 'not-held' }
    const currentToken = tokenOf(grant.lock)
    if (expectedToken !== undefined && expectedToken !== currentToken) {
      return { kind: 'stale', currentToken }
    }
    const audit: AuditRecord = {
      key,
      previousOwnerId: grant.record.ownerId,
      previousToken: String(currentToken),
      tokenOffset: state.epoch.tokenOffset,
      operator,
      reason,
      revokedAtMs: state.nowMs(),
    }
    const revocationId = state.ids.uuid()
    const answer = await state.proposals.submit(revocation(state, grant, audit, revocationId), [
      key,
    ])
    if (answer.succeeded) {
      state.grants.delete(key)
      const floor = floorOf(audit, answer.revision)
      const outcome = new LockOutcome(key, true, audit.previousOwnerId, currentToken, floor)
      return { kind: 'revoked', outcome, revocationId }
    }
    await state.epoch.load()
  }
  throw new ContentionError(`the holder of the key changed ${TRIES} times while it was revoked`)
}

/**
 * One step: the grant goes, the floor rises, the record stays. The floor is this transaction's own
 * revision, a token that nobody is granted: the holder's own would not do, for a guard that the
 * holder has been admitted to goes on accepting an equal token (decision 4).
 */
function revocation(state: EtcdState, grant: LiveGrant, audit: AuditRecord, id: string): Txn {
  const { keys } = state
  return {
    compare: [
      unchangedSince(keys.lock(audit.key), grant.lock.modRevision),
      exists(keys.ttl(audit.key)),
      exists(keys.session(grant.record.sessionId)),
      state.epoch.unchanged,
    ],
    success: [
      remove(keys.lock(audit.key)),
      remove(keys.ttl(audit.key)),
      remove(keys.held(grant.record.sessionId, audit.key)),
      put(keys.floor(audit.key), ''),
      put(keys.audit(id), encode(audit)),
    ],
    failure: [],
  }
}
