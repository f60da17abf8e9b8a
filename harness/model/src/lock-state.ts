/** A key at one instant, as far as what was seen tells. */
export interface LockState {
  readonly holder: Holder | undefined
  /** Every later token is above it. It never goes down (INV-04). */
  readonly floor: bigint
}

/**
 * Who was granted the key last, until the record of it is gone. The grant may be over although
 * nobody has noticed: from `until` on, expiry needs no event.
 */
export interface Holder {
  readonly session: string
  /** Of an unseen grant: at least this. */
  readonly token: bigint
  /** Its answer was lost: the service granted it, and nobody was told its token. */
  readonly unseen: boolean
  /** It does not end by itself before this, in nanoseconds since the history's beginning. */
  readonly until: number
  /** Somebody was told that it is over. Its record may still lie there for its holder to release. */
  readonly over: boolean
}

/** A key that nobody has ever held. */
export const FREE: LockState = { holder: undefined, floor: 0n }

/** Equal for equal states. */
export function stateKey({ holder, floor }: LockState): string {
  if (holder === undefined) return `${floor}`
  const { session, token, unseen, until, over } = holder
  return `${floor} ${token} ${unseen} ${until} ${over} ${session}`
}
