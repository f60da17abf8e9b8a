/**
 * One call of one client about one key, from its sending to its answer, and what is known of it.
 *
 * - `ok`: it happened, some time in between.
 * - `fail`: it definitely did not. `refused` when the service itself said no, and so saw a reason;
 *   otherwise it may never have been asked (a client that knew better), and proves nothing.
 * - `info`: nobody knows. It may take effect at any time after its sending, or never; or more than
 *   once, as a network may repeat it. A time-out is always this.
 */
export type Operation = Called & Action

/** Who called, and when. Times are in nanoseconds since the history's beginning. */
export interface Called {
  readonly id: number
  /** Has one open call at a time, and is never heard of again after an `info`. */
  readonly process: number
  /** The session for which it calls, by a public name. */
  readonly session: string
  readonly invokedAt: number
  /** Infinite for an `info`. */
  readonly endedAt: number
}

/** What was asked, and what came of it. */
export type Action =
  | ({ readonly f: 'acquire' } & (Granted | Fail | Info))
  | ({ readonly f: 'renew'; readonly token: bigint } & (Renewed | Fail | Info))
  | ({ readonly f: 'release'; readonly token: bigint } & (Ok | Fail | Info))
  | ({ readonly f: 'revoke' } & (Revoked | Fail | Info))
  /** The session's end, which takes its grants along. */
  | ({ readonly f: 'close' } & (Ok | Fail | Info))

interface Ok {
  readonly type: 'ok'
}

interface Granted extends Ok {
  readonly token: bigint
  /** The grant does not end by itself before this: the deadline on the holder's handle. */
  readonly until: number
}

interface Renewed extends Ok {
  readonly until: number
}

interface Revoked extends Ok {
  /** Of the grant that was taken away. */
  readonly token: bigint
  /** Every later token is above it. */
  readonly floor: bigint
}

interface Fail {
  readonly type: 'fail'
  readonly refused: boolean
}

interface Info {
  readonly type: 'info'
}
