import {
  type AbortSignalLike,
  checkKey,
  checkMaxWaitMs,
  checkOwnerId,
  checkTtlMs,
  LockHandle,
  type LockInfo,
  LockOutcome,
  type LockService,
} from '@dlock/lock-api'
import type { Acquire } from './acquire.ts'
import type { LockEngine } from './lock-engine.ts'

export interface SessionBoundOptions {
  readonly sessionId: string
  readonly engine: LockEngine
  readonly acquire: Acquire
  readonly maxTtlMs: number
  readonly maxWaitMs: number
  readonly renew: (handle: LockHandle) => Promise<LockHandle | undefined>
  readonly release: (handle: LockHandle) => Promise<boolean>
}

/** The contract, for one session. Keeps nothing: any number may be made for a session. */
export class SessionBound implements LockService {
  readonly #options: SessionBoundOptions

  constructor(options: SessionBoundOptions) {
    this.#options = options
  }

  async acquire(
    key: string,
    ownerId: string,
    ttlMs: number,
    maxWaitMs: number,
    signal?: AbortSignalLike,
  ): Promise<LockHandle | undefined> {
    const { acquire, sessionId, maxTtlMs } = this.#options
    checkKey(key)
    checkOwnerId(ownerId)
    checkTtlMs(ttlMs, 'ttlMs', maxTtlMs)
    checkMaxWaitMs(maxWaitMs, 'maxWaitMs', this.#options.maxWaitMs)
    return acquire.acquire({ key, ownerId, sessionId, ttlMs }, maxWaitMs, signal)
  }

  async tryAcquire(key: string, ownerId: string, ttlMs: number): Promise<LockHandle | undefined> {
    return this.acquire(key, ownerId, ttlMs, 0)
  }

  async renew(handle: LockHandle): Promise<LockHandle | undefined> {
    return this.#options.renew(this.#own(handle))
  }

  async release(handle: LockHandle): Promise<boolean> {
    return this.#options.release(this.#own(handle))
  }

  async inspect(key: string): Promise<LockInfo | undefined> {
    return this.#options.engine.inspect(key)
  }

  async forceRevoke(key: string, operator: string, reason: string): Promise<LockOutcome> {
    const revocation = await this.#options.engine.revoke(key, operator, reason)
    return revocation.kind === 'revoked' ? revocation.outcome : LockOutcome.notHeld(key)
  }

  #own(handle: LockHandle): LockHandle {
    if (!(handle instanceof LockHandle)) {
      throw new TypeError(`handle must be a LockHandle, got ${typeof handle}`)
    }
    if (handle.sessionId !== this.#options.sessionId) {
      throw new RangeError('handle must be of the session that this service is bound to')
    }
    return handle
  }
}
