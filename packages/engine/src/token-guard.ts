import { type LockHandle, NotLeaderError, type TokenCapability } from '@dlock/lock-api'

/** What the next token of a key must be above, as of the moment it was asked for. */
export interface TokenMark {
  readonly token: bigint
  /** Who got that token, and may be told the same grant again; `undefined` when it is a bound. */
  readonly sessionId: string | undefined
}

/** What was caught: `fencingToken` came, though `highestSeen` had been handed out before. */
export interface TokenRegression {
  readonly key: string
  readonly fencingToken: bigint
  readonly highestSeen: bigint
}

/**
 * Catches a store whose tokens went backwards (INV-04): restored from a backup, or failed over to
 * a standby that had missed some. Without it, every later check of every resource would pass and
 * protect nothing.
 *
 * A token minted after a request was sent must be above every token of the key that had been
 * handed out **before** it was sent. Only that comparison is sound: two answers may overtake each
 * other on their way back, so a lower token that arrives later proves nothing by itself.
 *
 * Memory is bounded: the keys granted least recently are forgotten, and the highest of their
 * tokens is kept as one bound for all of them. Tokens of different keys are not comparable, so
 * below the bound nothing is proven, but something is to be asked: a store that can say how high
 * its tokens are (`TokenCapability`), and names less than a token it has issued, went backwards,
 * whatever the key. The engine asks it the same at every sweep, so a restore is noticed even if
 * the keys that it harmed were granted elsewhere. A store that cannot be asked is guarded for the
 * remembered keys only.
 */
export class TokenGuard {
  readonly #marks = new Map<string, TokenMark>()
  readonly #limit: number
  readonly #tokens: TokenCapability | undefined
  readonly #onRegression: (regression: TokenRegression) => void
  #forgotten: TokenMark = { token: 0n, sessionId: undefined }
  #highest = 0n
  #highestKey = ''
  #stopped: NotLeaderError | undefined

  constructor(
    tokens: TokenCapability | undefined,
    onRegression: (regression: TokenRegression) => void,
    limit = 50_000,
  ) {
    this.#tokens = tokens
    this.#onRegression = onRegression
    this.#limit = limit
  }

  /** Why nothing is granted any more; `undefined` while all is well. There is no way back. */
  get stopped(): NotLeaderError | undefined {
    return this.#stopped
  }

  /** How many keys are remembered. */
  get size(): number {
    return this.#marks.size
  }

  /** To be taken before the store is asked for a grant of `key`. */
  mark(key: string): TokenMark {
    return this.#marks.get(key) ?? this.#forgotten
  }

  /** False: `handle` needs `confirm`. `mark` is from before the store was asked for it. */
  accepts(mark: TokenMark, handle: LockHandle): boolean {
    if (handle.fencingToken > mark.token) return true
    // The same session's own live grant again (decision 3).
    return handle.fencingToken === mark.token && handle.sessionId === mark.sessionId
  }

  /** @throws NotLeaderError when the token proves that the store went backwards; all is stopped */
  async confirm(mark: TokenMark, handle: LockHandle): Promise<void> {
    const { key, fencingToken } = handle
    const exact = mark.sessionId !== undefined
    if (exact) throw this.#stop({ key, fencingToken, highestSeen: mark.token })
    await this.checkCounter()
  }

  /** @throws NotLeaderError when the store names a token below one that it has issued */
  async checkCounter(): Promise<void> {
    // Read before the store is asked: what is handed out meanwhile is not in its answer.
    const [key, highestSeen] = [this.#highestKey, this.#highest]
    if (this.#tokens === undefined || highestSeen === 0n) return
    const counter = await this.#tokens.highestToken()
    if (counter < highestSeen) throw this.#stop({ key, fencingToken: counter, highestSeen })
  }

  /** @returns false: a later grant of the key has been handed out already */
  remember(handle: LockHandle): boolean {
    const { key, fencingToken, sessionId } = handle
    if (fencingToken > this.#highest) {
      this.#highest = fencingToken
      this.#highestKey = key
    }
    const known = this.#marks.get(key)
    if (known !== undefined && known.token > fencingToken) return false
    // Taken out first, so that the map is in the order of the last grants.
    this.#marks.delete(key)
    this.#marks.set(key, { token: fencingToken, sessionId })
    if (this.#marks.size > this.#limit) this.#forgetOldest()
    return true
  }

  #forgetOldest(): void {
    for (const [key, { token }] of this.#marks) {
      this.#marks.delete(key)
      if (token > this.#forgotten.token) this.#forgotten = { token, sessionId: undefined }
      return
    }
  }

  #stop(regression: TokenRegression): NotLeaderError {
    const first = this.#stopped === undefined
    this.#stopped ??= new NotLeaderError(
      'token regression: the store issued a fencing token that is not above an earlier one; this' +
        ' engine grants nothing until its tokens were advanced and the process was restarted',
    )
    if (first) this.#onRegression(regression)
    return this.#stopped
  }
}
