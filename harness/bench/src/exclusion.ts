/**
 * Looks over the shoulder of every cycle: a key has one holder at a time, and each token is above
 * the key's last. A figure counts only when this has counted nothing.
 *
 * It sees what the callers of one process believe, which in a run without faults must agree with
 * what is so. With holders in two processes the tokens alone are compared.
 */
export class Exclusion {
  readonly #holders = new Set<string>()
  readonly #highest = new Map<string, bigint>()
  #violations = 0

  get violations(): number {
    return this.#violations
  }

  /** To be called at once when a grant is here. */
  granted(key: string, fencingToken: bigint): void {
    if (this.#holders.has(key)) this.#violations += 1
    this.#holders.add(key)
    this.seen(key, fencingToken)
  }

  /** To be called just before the release leaves. */
  released(key: string): void {
    this.#holders.delete(key)
  }

  /** A grant that another process holds. */
  seen(key: string, fencingToken: bigint): void {
    if (fencingToken <= (this.#highest.get(key) ?? 0n)) this.#violations += 1
    this.#highest.set(key, fencingToken)
  }

  /** @throws Error when there was a violation: the figures of the run are worth nothing */
  check(what: string): void {
    if (this.#violations > 0) {
      throw new Error(
        `${what}: ${this.#violations} violations of mutual exclusion; no figure of it counts`,
      )
    }
  }
}
