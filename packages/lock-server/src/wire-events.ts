import type { LockEvent } from '@dlock/engine'
import { formatFencingToken, formatTime, type WireEvent } from '@dlock/protocol'

/** An engine's event as it is streamed. Contention is not: it is frequent and changes nothing. */
export function wireEventOf(event: LockEvent): WireEvent | undefined {
  const at = formatTime(event.at)
  switch (event.type) {
    case 'lock_contended':
      return undefined
    case 'lock_granted': {
      const { type, key, ownerId } = event
      const fencingToken = formatFencingToken(event.fencingToken)
      return { type, at, key, ownerId, fencingToken, waitedMillis: Math.round(event.waitedMs) }
    }
    case 'lock_released':
    case 'lease_expired': {
      const { type, key, ownerId } = event
      return { type, at, key, ownerId, fencingToken: formatFencingToken(event.fencingToken) }
    }
    case 'lock_revoked':
      return {
        type: event.type,
        at,
        key: event.key,
        operator: event.operator,
        reason: event.reason,
        previousOwnerId: event.previousOwnerId,
        previousToken: formatFencingToken(event.previousToken),
        newTokenFloor: formatFencingToken(event.newTokenFloor),
      }
    case 'session_opened':
    case 'session_closed':
    case 'session_expired':
      return { type: event.type, at, ownerId: event.ownerId }
    case 'token_regression':
      return {
        type: event.type,
        at,
        key: event.key,
        fencingToken: formatFencingToken(event.fencingToken),
        highestSeen: formatFencingToken(event.highestSeen),
      }
  }
}
