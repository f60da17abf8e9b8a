import { type LockHandle, LockLostError } from '@dlock/lock-api'
import type { AcquireOptions, LockClientSession } from '@dlock/lock-client'
import { type End, type RecordedClient, UNKNOWN } from './recorder.ts'

/**
 * A session of the SDK whose calls are written down, as its application sees them. The SDK asks
 * again by itself and knows of losses before the service does, so a no of it is a `fail` that
 * proves nothing; and it renews in the background, which only makes leases longer than the
 * history says. A release that found nothing is an `info`: a request that was repeated on its way
 * answers so, although the first of the two did it.
 */
export class RecordedSession {
  readonly #session: LockClientSession
  readonly #client: RecordedClient

  constructor(session: LockClientSession, client: RecordedClient) {
    this.#session = session
    this.#client = client
  }

  /** As `LockClientSession.acquire`. */
  acquire(key: string, options: AcquireOptions): Promise<LockHandle | undefined> {
    return this.#client.call({
      key,
      f: 'acquire',
      send: () => this.#session.acquire(key, options),
      answered: (handle) =>
        handle === undefined ? { type: 'fail', value: null } : this.#granted(handle),
    })
  }

  /** As `LockClientSession.renew`. */
  renew(handle: LockHandle): Promise<LockHandle> {
    return this.#client.call({
      key: handle.key,
      f: 'renew',
      token: handle.fencingToken,
      send: () => this.#session.renew(handle),
      answered: (renewed) => this.#granted(renewed),
      failed: (error) => lostOrUnknown(error, handle),
    })
  }

  /** As `LockClientSession.release`. */
  release(handle: LockHandle): Promise<boolean> {
    return this.#client.call({
      key: handle.key,
      f: 'release',
      token: handle.fencingToken,
      send: () => this.#session.release(handle),
      answered: (wasMine) => (wasMine ? { type: 'ok', value: `${handle.fencingToken}` } : UNKNOWN),
      failed: (error) => lostOrUnknown(error, handle),
    })
  }

  /** As `LockClientSession.close`, which does not say whether the service has heard of it. */
  close(): Promise<void> {
    return this.#client.close(() => this.#session.close(), UNKNOWN)
  }

  #granted({ fencingToken, clientDeadlineNanos }: LockHandle): End {
    const until = this.#client.instant(clientDeadlineNanos)
    return { type: 'ok', value: `${fencingToken}`, until }
  }
}

/** The SDK says that a lock is lost without asking: nothing was sent, or nothing was done. */
function lostOrUnknown(error: unknown, { fencingToken }: LockHandle): End {
  return error instanceof LockLostError ? { type: 'fail', value: `${fencingToken}` } : UNKNOWN
}
