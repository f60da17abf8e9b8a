import type { AuditCapability, AuditedRevocation, LockOutcome, LockStore } from '@dlock/lock-api'

/**
 * Revokes through the store's audit where there is one. Without it the record is written all the
 * same, but has no name of its own: the floor, which no other revocation of the key has, names it.
 *
 * @throws RangeError when `expectedToken` is given and the store cannot compare it in the same step
 */
export async function revokeThrough(
  store: LockStore,
  audit: AuditCapability | undefined,
  key: string,
  operator: string,
  reason: string,
  expectedToken: bigint | undefined,
): Promise<AuditedRevocation> {
  if (audit !== undefined) return audit.revokeExpecting(key, operator, reason, expectedToken)
  if (expectedToken !== undefined) {
    throw new RangeError(
      `expectedToken must be absent: this store cannot compare it while it revokes, got ${expectedToken}`,
    )
  }
  return named(await store.revoke(key, operator, reason))
}

function named(outcome: LockOutcome): AuditedRevocation {
  return outcome.revoked
    ? { kind: 'revoked', outcome, revocationId: `floor-${outcome.newTokenFloor}` }
    : { kind: 'not-held' }
}
