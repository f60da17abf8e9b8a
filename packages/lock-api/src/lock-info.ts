import { checkInstant, checkKey, checkOwnerId } from './checks.ts'
import { checkFencingToken } from './fencing-token.ts'

/**
 * A diagnostic view of a held key. **Advisory**: stale the moment it was made, and never usable
 * for a correctness decision (FR-07). Only a token that a resource accepted decides anything.
 *
 * `acquiredAt` and `expiresAt` are the store's wall clock, for people. `waiterCount` counts the
 * waiters that the answering process knows of.
 */
export class LockInfo {
  readonly key: string
  readonly ownerId: string
  readonly fencingToken: bigint
  readonly #acquiredAtMs: number
  readonly #expiresAtMs: number
  readonly waiterCount: number

  /**
   * @throws TypeError when an argument has the wrong type
   * @throws RangeError when one is blank or out of range
   */
  constructor(
    key: string,
    ownerId: string,
    fencingToken: bigint,
    acquiredAt: Date,
    expiresAt: Date,
    waiterCount: number,
  ) {
    this.key = checkKey(key)
    this.ownerId = checkOwnerId(ownerId)
    this.fencingToken = checkFencingToken(fencingToken)
    this.#acquiredAtMs = checkInstant(acquiredAt, 'acquiredAt')
    this.#expiresAtMs = checkInstant(expiresAt, 'expiresAt')
    if (typeof waiterCount !== 'number') {
      throw new TypeError(`waiterCount must be a number, got ${typeof waiterCount}`)
    }
    if (!Number.isSafeInteger(waiterCount) || waiterCount < 0) {
      throw new RangeError(`waiterCount must be a whole number from 0, got ${waiterCount}`)
    }
    this.waiterCount = waiterCount
    Object.freeze(this)
  }

  get acquiredAt(): Date {
    return new Date(this.#acquiredAtMs)
  }

  get expiresAt(): Date {
    return new Date(this.#expiresAtMs)
  }

  /** True when every component is equal. */
  equals(other: LockInfo): boolean {
    return (
      other instanceof LockInfo &&
      other.key === this.key &&
      other.ownerId === this.ownerId &&
      other.fencingToken === this.fencingToken &&
      other.#acquiredAtMs === this.#acquiredAtMs &&
      other.#expiresAtMs === this.#expiresAtMs &&
      other.waiterCount === this.waiterCount
    )
  }

  /** The same view with another count of waiters. */
  withWaiterCount(waiterCount: number): LockInfo {
    return new LockInfo(
      this.key,
      this.ownerId,
      this.fencingToken,
      this.acquiredAt,
      this.expiresAt,
      waiterCount,
    )
  }
}
