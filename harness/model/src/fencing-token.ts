/**
 * Life of a fencing token, step 8 of 8: is proven (model).
 *
 * The one rule that everything else leans on: a new grant's token is above `floor`, which is every
 * token of the key so far, revocations included (INV-04). Nothing is said of by how much: gaps mean
 * nothing. `harness/check` demands it of every history, and so finds the token that was granted
 * twice, the counter that restarted, and the take-over that kept its predecessor's number.
 */
export function mayBeMinted(floor: bigint, token: bigint): boolean {
  return token > floor
}

/**
 * What is known of a token that nobody was told: it is at least this. A grant whose answer was lost
 * has used up a token, so whatever follows it is above that one too.
 */
export function leastUnseen(floor: bigint): bigint {
  return floor + 1n
}
