import type { LockHandle, LockService } from '@dlock/lock-api'
import type { End, RecordedClient } from './recorder.ts'

/** Of a `LockService` that is bound to a session, the calls that a history knows. */
export type RecordedCalls = Pick<LockService, 'acquire' | 'renew' | 'release' | 'forceRevoke'>

/**
 * A bound service whose calls are written down. What it answers is the service's own word, so a
 * refusal is written as one, `refused`; but for an acquire that waits: it may give up while nobody
 * holds the key, in line behind others.
 *
 * A call that rejects is an `info`, whatever the error: it does not say how far the call got.
 */
export function recordedService(client: RecordedClient, service: RecordedCalls): RecordedCalls {
  const granted = ({ fencingToken, clientDeadlineNanos }: LockHandle): End => ({
    type: 'ok',
    value: `${fencingToken}`,
    until: client.instant(clientDeadlineNanos),
  })
  return {
    acquire: (key, ownerId, ttlMs, maxWaitMs, signal) =>
      client.call({
        key,
        f: 'acquire',
        send: () => service.acquire(key, ownerId, ttlMs, maxWaitMs, signal),
        answered: (handle) =>
          handle === undefined
            ? { type: 'fail', value: null, refused: maxWaitMs === 0 }
            : granted(handle),
      }),
    renew: (handle) =>
      client.call({
        key: handle.key,
        f: 'renew',
        token: handle.fencingToken,
        send: () => service.renew(handle),
        answered: (renewed) => (renewed === undefined ? refusedOf(handle) : granted(renewed)),
      }),
    release: (handle) =>
      client.call({
        key: handle.key,
        f: 'release',
        token: handle.fencingToken,
        send: () => service.release(handle),
        answered: (wasMine) =>
          wasMine ? { type: 'ok', value: `${handle.fencingToken}` } : refusedOf(handle),
      }),
    forceRevoke: (key, operator, reason) =>
      client.call({
        key,
        f: 'revoke',
        send: () => service.forceRevoke(key, operator, reason),
        answered: ({ previousToken, newTokenFloor }) =>
          previousToken === undefined || newTokenFloor === undefined
            ? { type: 'fail', value: null, refused: true }
            : { type: 'ok', value: `${previousToken}`, floor: `${newTokenFloor}` },
      }),
  }
}

function refusedOf({ fencingToken }: LockHandle): End {
  return { type: 'fail', value: `${fencingToken}`, refused: true }
}
