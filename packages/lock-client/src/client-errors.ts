import { RetryableLockError } from '@dlock/lock-api'

/**
 * `hold` did not get the lock: another had it for as long as the wait lasted. An expected outcome,
 * which is an error here only because `await using` has no other way to not begin. Retryable:
 * bounded, and not in a tight loop.
 */
export class LockNotGrantedError extends RetryableLockError {
  override readonly name = 'LockNotGrantedError'
  readonly key: string

  constructor(key: string) {
    super(`lock ${JSON.stringify(key)} was not granted: another holds it`)
    this.key = key
  }
}

/**
 * `checkStillHeld` was asked whether the lock is good for `needMs`, and it is not. **The lock is
 * held still**, and nothing was done. Renew it or acquire it anew and check again; when its lease is
 * too short in itself, ask for a longer one.
 */
export class LeaseTooShortError extends RetryableLockError {
  override readonly name = 'LeaseTooShortError'
  readonly key: string
  readonly fencingToken: bigint
  readonly needMs: number
  /** What was left of the lease, as the client counts it. */
  readonly leftMs: number

  constructor(key: string, fencingToken: bigint, needMs: number, leftMs: number) {
    super(
      `lock ${JSON.stringify(key)} with token ${fencingToken} is held for ${Math.floor(leftMs)} ms more, and ${needMs} ms are needed`,
    )
    this.key = key
    this.fencingToken = fencingToken
    this.needMs = needMs
    this.leftMs = leftMs
  }
}
