import type { Random } from '@dlock/system'

const BACKOFF_BASE_MS = 50
const BACKOFF_CAP_MS = 2_000

/** Full jitter: uniform in [0, min(cap, base · 2^failures)] (FR-28). */
export function backoffMs(random: Random, failures: number): number {
  return random.next() * Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** failures)
}

/** Between half a period and a whole one, so that processes do not fall into step. */
export function jitteredMs(random: Random, periodMs: number): number {
  return periodMs * (0.5 + random.next() / 2)
}

export function nanosOf(ms: number): bigint {
  return BigInt(Math.floor(ms * 1_000_000))
}

export function msBetween(fromNanos: bigint, toNanos: bigint): number {
  return Number(toNanos - fromNanos) / 1_000_000
}

export function secondsBetween(fromNanos: bigint, toNanos: bigint): number {
  return Number(toNanos - fromNanos) / 1_000_000_000
}
