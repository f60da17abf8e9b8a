import { checkFencingToken, MAX_FENCING_TOKEN } from '@dlock/lock-api'

/**
 * Life of a fencing token, step 6 of 8: is checked (guard).
 *
 * A resource keeps one number per lock key, its **fence**: the highest token it has accepted, or
 * the floor that was pushed to it, whichever is higher; 0 when neither happened yet. It only ever
 * goes up (INV-05). A protected write presents its grant's token, and one of three rules decides;
 * choose it by what one grant writes.
 *
 * | One grant writes here … | Rule | With the next looser one |
 * |---|---|---|
 * | once, or for the first of several times | `admits`, `fence < token` | a replay is taken twice |
 * | again, after its admission | `continues`, `fence = token` | a grant never admitted writes |
 * | many times, each harmless to repeat | `permits`, `fence <= token` | there is none |
 *
 * Two conditions make any of them safe. There is **one fence per lock key**, not one per row: with
 * a fence per row, a row that the new holder has not touched yet is open to the old one (P-26). And
 * the decision, the new fence and the write are **one atomic step**: whoever compares first and
 * writes later has a guard with a gap in it.
 */
export type FencingRule = (fence: bigint, token: bigint) => boolean

/**
 * The admission: a grant's first protected write. Right wherever an effect must happen at most once
 * per grant, such as a call to a system that has no memory, and for the claim that opens a grant's
 * series of writes (decision 4).
 *
 * With `permits` in its place the very same request, repeated by a network or a retry, is taken
 * again; with `continues`, nobody is ever admitted. A grant that has to write twice needs
 * `continues` for the second write: by this rule it would fence itself out.
 */
export function admits(fence: bigint, token: bigint): boolean {
  return fence < token
}

/**
 * The continuation: a later write of a grant that was admitted here. Right when the writes of one
 * grant belong together, so that a later one is meaningful only if the first one was.
 *
 * With `permits` in its place a newer holder could write in the middle of a series that it never
 * opened; with `admits`, the second write of every grant is refused.
 */
export function continues(fence: bigint, token: bigint): boolean {
  return fence === token
}

/**
 * The plain rule, for a resource that one grant writes many times and where a repeated write does
 * no harm: `SET status = …`, an upload under a name. An older token is refused, nothing else is.
 *
 * It does not notice a replay: where a repeated write does harm (money, messages, counters), it is
 * the wrong rule. With `admits` in its place, the second write of every grant is refused.
 */
export function permits(fence: bigint, token: bigint): boolean {
  return fence <= token
}

/**
 * The fence after a floor was pushed: an operator revoked a grant, and every token up to the floor
 * is dead here from now on (decision 5). Never lower than before.
 *
 * The floor is a revocation's `newTokenFloor`, above the displaced token and below every later one.
 * A made-up floor that is higher than the store will ever mint locks every later holder out (P-28):
 * see `checkFloor`.
 */
export function advance(fence: bigint, floor: bigint): bigint {
  return floor > fence ? floor : fence
}

/**
 * Returns `floor` when some later token can still be above it.
 *
 * @param highestToken the highest token that the lock service has issued or will ever stay above,
 *   if the caller knows it. A floor above it was not given out by that service, and is refused: who
 *   means it raises the store first (`advanceTokens`), then pushes. Tokens only go up, so a floor
 *   that was fine when it was checked stays fine
 * @throws RangeError when it is outside 1 … 2^63 − 2, or above `highestToken` (P-28)
 */
export function checkFloor(floor: bigint, highestToken?: bigint): bigint {
  checkFencingToken(floor, 'floor')
  if (floor === MAX_FENCING_TOKEN) {
    throw new RangeError(`floor must be below ${MAX_FENCING_TOKEN}: no token could ever follow it`)
  }
  if (highestToken !== undefined && floor > highestToken) {
    throw new RangeError(
      `floor must be at most ${highestToken}, the highest token of the lock service, got ${floor}: ` +
        'every later holder would be locked out until the service has caught up',
    )
  }
  return floor
}

/** What a guard answers. Refusal is a value, and carries both tokens (FR-16). */
export type Verdict = Passed | Refused

/** The token was high enough. Whatever is written in the same transaction is protected. */
export interface Passed {
  readonly passed: true
}

/** The token was not high enough; nothing was written. Final for the grant that presented it. */
export interface Refused {
  readonly passed: false
  readonly key: string
  readonly presentedToken: bigint
  /** The fence that refused it; 0 when no token was ever accepted (a continuation of nothing). */
  readonly storedToken: bigint
}
