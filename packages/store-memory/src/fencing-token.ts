import { checkFencingToken, MAX_FENCING_TOKEN } from '@dlock/lock-api'

/**
 * Life of a fencing token, step 2 of 8: is minted (store-memory).
 *
 * One counter for every key, beside the grants and not in them: a counter that lived in a grant
 * would die with its release, and the next token would be an old one again (P-24). One counter
 * needs no memory per key (P-29). It never goes back.
 */
export class TokenCounter {
  #highest = 0n

  /** The highest token minted or skipped so far; 0 before the first. */
  get highest(): bigint {
    return this.#highest
  }

  /** @throws RangeError when the last token, 2^63 − 1, was minted: nothing is granted any more */
  mint(): bigint {
    const token = checkFencingToken(this.#highest + 1n)
    this.#highest = token
    return token
  }

  /**
   * Skips every token up to `above`. Forward only.
   *
   * @throws RangeError when no token would be left to mint (P-28)
   */
  advance(above: bigint): bigint {
    if (checkFencingToken(above, 'above') === MAX_FENCING_TOKEN) {
      throw new RangeError(`above must be below ${MAX_FENCING_TOKEN}: no token would be left`)
    }
    if (above > this.#highest) this.#highest = above
    return this.#highest
  }
}
