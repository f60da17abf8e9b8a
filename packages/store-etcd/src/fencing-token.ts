import { checkFencingToken } from '@dlock/lock-api'
import type { KeyValue } from './client/txn.ts'
import { type AuditRecord, lockRecordOf } from './records.ts'

/**
 * Life of a fencing token, step 2 of 8: is minted (store-etcd).
 *
 * The lock's record is written once per grant, and its `ModRevision`, the revision of the granting
 * transaction, is the token (FR-10). etcd's revision only goes up, so a later grant of the key has
 * a higher one. Two keys granted in one transaction share a revision, which is fine: a token orders
 * the grants of one key. A renewal writes another key, never the record, or the token would move.
 *
 * A restored snapshot starts again at an old revision. So the token is an offset plus the revision:
 * `advanceTokens` raises the offset in `meta`, every acquire compares `meta`, and the record keeps
 * the offset it was granted under, so that raising it changes no live grant's token.
 */
export function tokenOf(lock: KeyValue): bigint {
  return checkFencingToken(BigInt(lockRecordOf(lock).tokenOffset) + lock.modRevision)
}

/** The floor of a revocation: its own transaction's place in the order of tokens. */
export function floorOf(audit: AuditRecord, revision: bigint): bigint {
  return checkFencingToken(BigInt(audit.tokenOffset) + revision)
}
