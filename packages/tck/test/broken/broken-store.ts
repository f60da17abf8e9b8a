import { LockHandle, type StoreCapabilities } from '@dlock/lock-api'
import { MemoryStore } from '@dlock/store-memory'
import type { Clock } from '@dlock/system'

/**
 * A store that is broken on purpose, in one way; most of the ways are ones in which somebody's
 * store was broken once. What it gets wrong is in its class, the rest is the memory store's.
 */
export interface BrokenStore {
  readonly store: new (clock: Clock) => MemoryStore
  /** The cases that must fail. Others may fail as well. */
  readonly fails: readonly string[]
}

export class OnClock extends MemoryStore {
  protected readonly clock: Clock

  constructor(clock: Clock) {
    super({ clock })
    this.clock = clock
  }

  protected get all(): Required<StoreCapabilities> {
    return super.capabilities() as Required<StoreCapabilities>
  }
}

export function withToken(grant: LockHandle, fencingToken: bigint): LockHandle {
  const { key, ownerId, sessionId, clientDeadlineNanos, serverExpiry } = grant
  return new LockHandle(key, ownerId, sessionId, fencingToken, clientDeadlineNanos, serverExpiry)
}

export function later(grant: LockHandle, ms: number): LockHandle {
  return grant.withClientDeadline(grant.clientDeadlineNanos + BigInt(ms) * 1_000_000n)
}
