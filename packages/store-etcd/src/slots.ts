import type { Ids } from '@dlock/system'
import type { EtcdClient } from './client/etcd-client.ts'

/**
 * A slot lease is shared by the grants and renewals that one process makes within about a second:
 * few leases, and few expiries when a process dies. It is never kept alive: a renewal moves its
 * marker to a newer slot instead, because what a keep-alive says cannot be trusted.
 *
 * etcd alone decides when a slot ends. This process's monotonic clock only decides whether a slot
 * is fresh enough to attach to: a marker attached to it now must live for its whole TTL.
 */
export class Slots {
  readonly #client: EtcdClient
  readonly #ids: Ids
  readonly #current = new Map<number, Slot>()

  constructor(client: EtcdClient, ids: Ids) {
    this.#client = client
    this.#ids = ids
  }

  /**
   * The id of a lease that lasts for at least `ttlMs` from now.
   *
   * @throws EtcdError
   */
  async leaseFor(ttlMs: number): Promise<string> {
    const now = this.#client.clock.monotonicNanos()
    const current = this.#current.get(ttlMs)
    if (current !== undefined && now < current.attachBeforeNanos) return await current.granted
    const slot = this.#grant(ttlMs, now)
    this.#forgetStale(now)
    this.#current.set(ttlMs, slot)
    try {
      return await slot.granted
    } catch (error) {
      this.forget(ttlMs)
      throw error
    }
  }

  /** The slot turned out to be gone: the next call grants another. */
  forget(ttlMs: number): void {
    this.#current.delete(ttlMs)
  }

  #grant(ttlMs: number, nowNanos: bigint): Slot {
    const seconds = Math.ceil((ttlMs + LEAST_WINDOW_MS) / 1_000)
    const leaseId = randomLeaseId(this.#ids)
    const windowMs = seconds * 1_000 - ttlMs
    return {
      attachBeforeNanos: nowNanos + BigInt(windowMs) * 1_000_000n,
      granted: this.#client.leaseGrant(leaseId, seconds).then(() => leaseId),
    }
  }

  /** Callers choose their TTLs; one slot for each that was ever used would be a leak. */
  #forgetStale(nowNanos: bigint): void {
    for (const [ttlMs, slot] of this.#current) {
      if (nowNanos >= slot.attachBeforeNanos) this.#current.delete(ttlMs)
    }
  }
}

/** TTLs are whole seconds, so a slot can be attached to for this long to a whole second more. */
const LEAST_WINDOW_MS = 1_000

interface Slot {
  readonly attachBeforeNanos: bigint
  readonly granted: Promise<string>
}

/** 1 … 2^63 − 1, as a decimal string: no lease id passes through a JavaScript number. */
export function randomLeaseId(ids: Ids): string {
  const hex = ids.uuid().replaceAll('-', '')
  const id = BigInt(`0x${hex.slice(0, 16)}`) & ((1n << 63n) - 1n)
  return String(id === 0n ? 1n : id)
}
