import type { LockHandle } from '@dlock/lock-api'
import { toNanos } from './deadline.ts'

/**
 * Life of a fencing token, step 5 of 8: is carried (lock-client).
 *
 * From the grant to the resource a token is the `fencingToken` of a `LockHandle` and an explicit
 * argument; there is nowhere else to look for it. The client's part is that *one* token is carried
 * by *one* holder.
 *
 * A session that asks again for what it holds gets the same grant with the same token (decision 3),
 * which makes a retry harmless, and would make two tasks of one process indistinguishable to every
 * guard. The queue per key sees to it that they ask one after the other. That leaves the grants
 * that the client has done with but that the service may still have: a release without an answer,
 * a lease that is over by the careful local clock only, a hold that reached its maximum. Their
 * tokens are spent: when the service answers with one, the grant is released and asked for anew.
 */
export class SpentTokens {
  readonly #byKey = new Map<string, SpentToken>()

  /** `handle`'s token is carried by nobody any more, and shall not be again. */
  add(handle: LockHandle, ttlMs: number, now: bigint): void {
    this.#forgetBefore(now)
    this.#byKey.delete(handle.key)
    this.#byKey.set(handle.key, {
      fencingToken: handle.fencingToken,
      forgetAt: now + toNanos(2 * ttlMs) + IN_FLIGHT_NANOS,
    })
  }

  has(key: string, fencingToken: bigint): boolean {
    return this.#byKey.get(key)?.fencingToken === fencingToken
  }

  /** The service released that grant, or granted a later one. */
  forget(key: string): void {
    this.#byKey.delete(key)
  }

  /** From the oldest on: a grant that nobody renews has long ended by then. */
  #forgetBefore(now: bigint): void {
    for (const [key, { forgetAt }] of this.#byKey) {
      if (forgetAt > now) return
      this.#byKey.delete(key)
    }
  }
}

interface SpentToken {
  readonly fencingToken: bigint
  readonly forgetAt: bigint
}

/** No renewal that is on its way arrives later than this. */
const IN_FLIGHT_NANOS = toNanos(60_000)
