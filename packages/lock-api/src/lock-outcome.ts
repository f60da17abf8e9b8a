import { checkKey, checkOwnerId } from './checks.ts'
import { checkFencingToken } from './fencing-token.ts'

/**
 * What a revocation did; the result of `forceRevoke` and `revoke` and of nothing else.
 *
 * When `revoked` is true the previous owner and token are those of the grant that was deleted, and
 * every later token of the key is above `newTokenFloor`, which is itself above `previousToken`: a
 * floor that equalled it would not stop a holder that its guard has admitted already (decision 4).
 * When `revoked` is false nothing was held, nothing was written, and the other three are
 * `undefined`.
 *
 * The floor fences nobody by itself: a resource that has not seen a higher token still accepts the
 * displaced holder's. Push it to the guards' `advance(resource, floor)` (decision 5).
 */
export class LockOutcome {
  readonly key: string
  readonly revoked: boolean
  readonly previousOwnerId: string | undefined
  readonly previousToken: bigint | undefined
  readonly newTokenFloor: bigint | undefined

  /**
   * @throws TypeError when an argument has the wrong type, or is present without `revoked`
   * @throws RangeError when one is out of range, or the floor is not above the previous token
   */
  constructor(
    key: string,
    revoked: boolean,
    previousOwnerId: string | undefined,
    previousToken: bigint | undefined,
    newTokenFloor: bigint | undefined,
  ) {
    this.key = checkKey(key)
    if (typeof revoked !== 'boolean') {
      throw new TypeError(`revoked must be a boolean, got ${typeof revoked}`)
    }
    this.revoked = revoked
    if (revoked) {
      if (
        previousOwnerId === undefined ||
        previousToken === undefined ||
        newTokenFloor === undefined
      ) {
        throw new TypeError('a revocation that happened names previous owner, token and floor')
      }
      checkOwnerId(previousOwnerId, 'previousOwnerId')
      checkFencingToken(previousToken, 'previousToken')
      checkFencingToken(newTokenFloor, 'newTokenFloor')
      if (newTokenFloor <= previousToken) {
        throw new RangeError(
          `newTokenFloor must be above previousToken ${previousToken}, got ${newTokenFloor}`,
        )
      }
    } else if (
      previousOwnerId !== undefined ||
      previousToken !== undefined ||
      newTokenFloor !== undefined
    ) {
      throw new TypeError('a revocation that did not happen has no previous owner, token or floor')
    }
    this.previousOwnerId = previousOwnerId
    this.previousToken = previousToken
    this.newTokenFloor = newTokenFloor
    Object.freeze(this)
  }

  /** The outcome of a revocation that found nothing to revoke. */
  static notHeld(key: string): LockOutcome {
    return new LockOutcome(key, false, undefined, undefined, undefined)
  }

  /** True when every component is equal. */
  equals(other: LockOutcome): boolean {
    return (
      other instanceof LockOutcome &&
      other.key === this.key &&
      other.revoked === this.revoked &&
      other.previousOwnerId === this.previousOwnerId &&
      other.previousToken === this.previousToken &&
      other.newTokenFloor === this.newTokenFloor
    )
  }
}
