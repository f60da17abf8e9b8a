/** Time as an argument. Whoever needs a clock or a timer is given one. */
export interface Clock {
  /** Monotonic, in nanoseconds, since an arbitrary start. Stops while the machine is suspended. */
  monotonicNanos(): bigint
  /** Monotonic, in nanoseconds, since boot. Counts suspension; coarser (10 ms on Linux). */
  bootNanos(): bigint
  /** The wall clock. For logs and people: it jumps, and decides nothing. */
  now(): Date
  /**
   * Calls `fire` once, after `delayMs` (any finite number from 0; beyond 2^31 ms too). The timer
   * does not keep the process alive unless `keepAlive` is set, which only a call that somebody
   * awaits may do.
   */
  setTimer(delayMs: number, fire: () => void, options?: { readonly keepAlive?: boolean }): Timer
}

/** A timer that was set. */
export interface Timer {
  /** Idempotent. After it, `fire` is not called. */
  cancel(): void
}

/** Chance as an argument. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number
}

/** Unguessable names as an argument. */
export interface Ids {
  /**
   * 128 random bits, spelled like a UUID. None of them is spent on saying a version: a session id
   * is a secret, and its contract asks for them all.
   */
  uuid(): string
}
