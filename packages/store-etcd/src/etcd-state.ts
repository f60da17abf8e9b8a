import { LockHandle, LockInfo } from '@dlock/lock-api'
import type { Clock, Ids } from '@dlock/system'
import { BoundedMemory } from './bounded-memory.ts'
import type { EtcdClient } from './client/etcd-client.ts'
import type { KeyValue } from './client/txn.ts'
import { Epoch } from './epoch.ts'
import { tokenOf } from './fencing-token.ts'
import { KeySpace } from './key-space.ts'
import { Proposals } from './proposals.ts'
import type { Place } from './queue.ts'
import { lockRecordOf, type MarkerRecord, type TtlRecord, ttlRecordOf } from './records.ts'
import { Slots } from './slots.ts'

/** etcd counts leases in whole seconds, and at its default election time-out grants no less than 2. */
export const TTL_BOUNDS = {
  granularityMs: 1_000,
  minTtlMs: 2_000,
  // A slot's second, the half second between two of etcd's looks for expired leases, and its round.
  maxLatenessMs: 2_500,
} as const

/** A grant as last seen. Only a guess, which every use compares: it saves the look before the leap. */
export interface SeenGrant {
  readonly fencingToken: bigint
  readonly lockRevision: bigint
  readonly ttlRevision: bigint
  readonly ttlMs: number
  readonly ownerId: string
  readonly sessionId: string
}

/** A session as last seen; a guess like `SeenGrant`. */
export interface SeenSession {
  readonly markerRevision: bigint
  readonly marker: MarkerRecord
  /** When its carrier was last kept alive, by this process's monotonic clock. */
  readonly carrierKeptNanos: bigint
}

const REMEMBERED = 100_000

/** What the verbs share. Nothing here decides anything: etcd does, by comparing. */
export class EtcdState {
  readonly client: EtcdClient
  readonly clock: Clock
  readonly ids: Ids
  readonly keys: KeySpace
  readonly proposals: Proposals
  readonly slots: Slots
  readonly epoch: Epoch
  readonly grants: BoundedMemory<SeenGrant> = new BoundedMemory(REMEMBERED)
  readonly sessions: BoundedMemory<SeenSession> = new BoundedMemory(REMEMBERED)

  /** Where this process stands in the queues for keys, by key. */
  readonly places: Map<string, Place> = new Map()

  readonly #turns = new Map<string, Promise<unknown>>()

  constructor(client: EtcdClient, namespace: string, ids: Ids) {
    this.client = client
    this.clock = client.clock
    this.ids = ids
    this.keys = new KeySpace(namespace)
    this.proposals = new Proposals(client)
    this.slots = new Slots(client, ids)
    this.epoch = new Epoch(client, this.keys)
  }

  nowMs(): number {
    return this.clock.now().getTime()
  }

  /**
   * Runs `step` when every earlier one of that name has ended: compare-and-swaps of one thing by
   * one process would only make each other fail.
   */
  async inTurn<Result>(name: string, step: () => Promise<Result>): Promise<Result> {
    const before = this.#turns.get(name)
    const turn = before === undefined ? step() : before.then(step, step)
    this.#turns.set(name, turn)
    try {
      return await turn
    } finally {
      if (this.#turns.get(name) === turn) this.#turns.delete(name)
    }
  }

  /** Remembers a grant by its two stored halves, and returns it as last seen. */
  seen(key: string, lock: KeyValue, ttl: KeyValue): SeenGrant {
    const { ownerId, sessionId } = lockRecordOf(lock)
    const grant: SeenGrant = {
      fencingToken: tokenOf(lock),
      lockRevision: lock.modRevision,
      ttlRevision: ttl.modRevision,
      ttlMs: ttlRecordOf(ttl).ttlMs,
      ownerId,
      sessionId,
    }
    this.grants.set(key, grant)
    return grant
  }

  ttlRecord(ttlMs: number): TtlRecord {
    return { ttlMs, expiresAtMs: this.nowMs() + ttlMs }
  }

  /** @param sentNanos the clock before the request left: a lease is counted from there */
  handleOf(key: string, grant: SeenGrant, sentNanos: bigint, ttlMs: number): LockHandle {
    return new LockHandle(
      key,
      grant.ownerId,
      grant.sessionId,
      grant.fencingToken,
      sentNanos + BigInt(ttlMs) * 1_000_000n,
      new Date(this.nowMs() + ttlMs),
    )
  }

  infoOf(key: string, lock: KeyValue, ttl: KeyValue): LockInfo {
    const { ownerId, acquiredAtMs } = lockRecordOf(lock)
    return new LockInfo(
      key,
      ownerId,
      tokenOf(lock),
      new Date(acquiredAtMs),
      new Date(ttlRecordOf(ttl).expiresAtMs),
      0,
    )
  }
}
