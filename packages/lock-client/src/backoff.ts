import { type AbortSignalLike, RetryableLockError } from '@dlock/lock-api'
import type { Clock, Random } from '@dlock/system'
import { toMs } from './deadline.ts'

const BASE_MS = 50
const CAP_MS = 2_000

/** Time and chance, as whoever waits between two tries needs them. */
export interface Pacing {
  readonly clock: Clock
  readonly random: Random
}

/**
 * How long to wait before the next try, after `failures` of them: full jitter, uniform in
 * [0, min(2 s, 50 ms · 2^failures)], and no less than a refusal that named a time asks for.
 */
export function backoffMs(random: Random, failures: number, error?: RetryableLockError): number {
  const jitterMs = random.next() * Math.min(CAP_MS, BASE_MS * 2 ** failures)
  return Math.max(jitterMs, error?.retryAfterMs ?? 0)
}

/**
 * Resolves after `ms`.
 *
 * @param options.signal rejects with its reason when it aborts
 * @param options.keepAlive whether somebody awaits this, so that the process must not end meanwhile
 */
export function pause(
  clock: Clock,
  ms: number,
  options: { readonly signal?: AbortSignalLike; readonly keepAlive: boolean },
): Promise<void> {
  const { signal, keepAlive } = options
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason as Error)
      return
    }
    const onAbort = (): void => {
      timer.cancel()
      reject(signal?.reason as Error)
    }
    const timer = clock.setTimer(
      ms,
      () => {
        signal?.removeEventListener('abort', onAbort)
        resolve()
      },
      { keepAlive },
    )
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

export interface RetryLimits {
  /** How many tries may follow the first. */
  readonly retries: number
  /** No try begins later than this after the first began. */
  readonly withinMs: number
  readonly signal?: AbortSignalLike
  readonly keepAlive: boolean
}

/**
 * `attempt`, and again after a retryable failure, within `limits`. Only for calls that may be made
 * twice.
 *
 * @throws what the last try threw, or the signal's reason
 */
export async function retry<T>(
  { clock, random }: Pacing,
  limits: RetryLimits,
  attempt: () => Promise<T>,
): Promise<T> {
  const began = clock.monotonicNanos()
  for (let failures = 0; ; failures++) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof RetryableLockError) || failures === limits.retries) throw error
      const delayMs = backoffMs(random, failures, error)
      const spentMs = toMs(clock.monotonicNanos() - began)
      if (spentMs + delayMs >= limits.withinMs) throw error
      await pause(clock, delayMs, limits)
    }
  }
}
