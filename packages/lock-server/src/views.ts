import type { LockInfo, Revocation, SessionInfo } from '@dlock/lock-api'
import {
  formatFencingToken,
  formatTime,
  type HeldLock,
  type RevocationView,
  type SessionView,
} from '@dlock/protocol'

/** The store's advisory views, as they are spelled. */
export function lockViewOf(info: LockInfo): HeldLock {
  return {
    held: true,
    key: info.key,
    ownerId: info.ownerId,
    fencingToken: formatFencingToken(info.fencingToken),
    acquiredAt: formatTime(info.acquiredAt),
    expiresAt: formatTime(info.expiresAt),
    waiterCount: info.waiterCount,
  }
}

export function sessionViewOf(info: SessionInfo): SessionView {
  return {
    sessionRef: info.sessionRef,
    ownerId: info.ownerId,
    createdAt: formatTime(info.createdAt),
    expiresAt: formatTime(info.expiresAt),
    heldLockCount: info.heldLockCount,
  }
}

export function revocationViewOf(revocation: Revocation): RevocationView {
  return {
    revocationId: revocation.revocationId,
    key: revocation.key,
    previousOwnerId: revocation.previousOwnerId,
    previousToken: formatFencingToken(revocation.previousToken),
    newTokenFloor: formatFencingToken(revocation.newTokenFloor),
    operator: revocation.operator,
    reason: revocation.reason,
    revokedAt: formatTime(revocation.revokedAt),
  }
}
