import { checkKey, type Unsubscribe } from '@dlock/lock-api'
import type { Random } from '@dlock/system'
import { DeleteWatch } from './client/delete-watch.ts'
import type { KeyValue } from './client/txn.ts'
import { type EtcdState, TTL_BOUNDS } from './etcd-state.ts'
import { departed, isNext, TICKET_LEASE_MS } from './queue.ts'
import { readLive } from './read.ts'
import { markerRecordOf, ttlRecordOf } from './records.ts'
import { sweepCarrier } from './sessions.ts'

/**
 * Nothing is marked: this process watches every deletion in the namespace, from before it asks. So
 * a release that a linearizable read did not see yet has a later revision, and is announced.
 */
export async function want(state: EtcdState, key: string): Promise<number | undefined> {
  const grant = await readLive(state, checkKey(key))
  // Free, and somebody else's turn: until their ticket is used, given up, or lapses.
  if (grant === undefined) return isNext(state, key) ? undefined : TICKET_LEASE_MS
  const lease = ttlRecordOf(grant.ttl).ttlMs
  const session = markerRecordOf(grant.session).ttlMs
  return Math.min(lease, session) + TTL_BOUNDS.maxLatenessMs
}

interface Listener {
  readonly onFreed: (key: string) => void
  readonly onGap: () => void
}

/** The process's one watch, for all who listen, and for the sweeping of dead sessions. */
export class Announcements {
  readonly #state: EtcdState
  readonly #random: Random
  readonly #listeners = new Set<Listener>()
  #watch: DeleteWatch | undefined

  constructor(state: EtcdState, random: Random) {
    this.#state = state
    this.#random = random
  }

  async subscribe(onFreed: (key: string) => void, onGap: () => void): Promise<Unsubscribe> {
    const listener = { onFreed, onGap }
    this.#listeners.add(listener)
    this.#watch ??= await this.#open()
    await this.#watch.created
    return async () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size > 0) return
      this.#watch?.close()
      this.#watch = undefined
    }
  }

  close(): void {
    this.#watch?.close()
    this.#listeners.clear()
  }

  async #open(): Promise<DeleteWatch> {
    const { client, keys } = this.#state
    const { revision } = await client.range({ key: Buffer.from(keys.meta) })
    return new DeleteWatch({
      client,
      random: this.#random,
      prefix: keys.prefix,
      fromRevision: revision + 1n,
      onDeleted: (stored, before) => this.#deleted(stored, before),
      onGap: () => {
        for (const place of this.#state.places.values()) place.keptNanos = undefined
        for (const { onGap } of this.#listeners) onGap()
      },
    })
  }

  /**
   * A lock is freed by the end of either half: its record's, or its marker's. Of the processes that
   * queue, only the next is woken, and each when it becomes the next.
   */
  #deleted(stored: string, before: KeyValue | undefined): void {
    const parsed = this.#state.keys.parse(stored)
    if (parsed === undefined) return
    if (parsed.kind === 'session') {
      this.#state.sessions.delete(parsed.name)
      // Frees the session's locks, whose deletions are then announced like any other.
      if (before !== undefined) void sweepCarrier(this.#state, markerRecordOf(before).carrier)
      return
    }
    const wakes =
      parsed.kind === 'ticket'
        ? departed(this.#state, parsed.name, stored)
        : isNext(this.#state, parsed.name)
    if (!wakes) return
    for (const { onFreed } of this.#listeners) onFreed(parsed.name)
  }
}
