import type { LockHandle } from '@dlock/lock-api'

/** A grant that this process made or renewed, as far as this process knows. */
export interface Grant {
  readonly key: string
  readonly fencingToken: bigint
  readonly ownerId: string
  readonly sessionId: string
  /** The lease that it was last granted or renewed with: what `renew` asks for again. */
  ttlMs: number
  /** When the lease ends if nobody prolongs it, by this process's clock; never too late. */
  endsAtNanos: bigint
}

/** A renewal in flight of a grant that was not in the book when it was sent. */
interface Renewal {
  readonly key: string
  readonly fencingToken: bigint
  readonly sessionId: string
  ended: boolean
}

/**
 * This process's book of its live grants. It decides nothing about who holds what, the store does:
 * it serves `renew` without a TTL, expiry events, the gauges, and a session that asks again.
 *
 * Bounded: above `limit` the oldest is forgotten. That costs its expiry event and its TTL.
 */
export class Grants {
  readonly #byKey = new Map<string, Grant>()
  readonly #bySession = new Map<string, Set<Grant>>()
  readonly #renewals = new Set<Renewal>()
  readonly #limit: number

  constructor(limit = 100_000) {
    this.#limit = limit
  }

  get size(): number {
    return this.#byKey.size
  }

  /** The grant of `key` that was made or renewed last. */
  of(key: string): Grant | undefined {
    return this.#byKey.get(key)
  }

  find(key: string, fencingToken: bigint): Grant | undefined {
    const grant = this.#byKey.get(key)
    return grant?.fencingToken === fencingToken ? grant : undefined
  }

  /**
   * Writes down a grant that is being handed out, or prolongs it when it is there already.
   *
   * @returns the grant of the same key that this one replaces, whose end nobody saw
   */
  record(handle: LockHandle, ttlMs: number, endsAtNanos: bigint): Grant | undefined {
    const known = this.#byKey.get(handle.key)
    if (known?.fencingToken === handle.fencingToken) {
      known.ttlMs = ttlMs
      known.endsAtNanos = endsAtNanos
      return undefined
    }
    if (known !== undefined) {
      // A late answer about a grant that has been superseded in the meantime.
      if (known.fencingToken > handle.fencingToken) return undefined
      this.#remove(known)
    }
    this.#add({
      key: handle.key,
      fencingToken: handle.fencingToken,
      ownerId: handle.ownerId,
      sessionId: handle.sessionId,
      ttlMs,
      endsAtNanos,
    })
    return known
  }

  /** @returns the grant, if it was in the book */
  forget(key: string, fencingToken: bigint): Grant | undefined {
    for (const renewal of this.#renewals) {
      if (renewal.key === key && renewal.fencingToken === fencingToken) renewal.ended = true
    }
    const grant = this.find(key, fencingToken)
    if (grant !== undefined) this.#remove(grant)
    return grant
  }

  /** @returns the grants of the session that were in the book */
  forgetSession(sessionId: string): readonly Grant[] {
    for (const renewal of this.#renewals) {
      if (renewal.sessionId === sessionId) renewal.ended = true
    }
    const grants = [...(this.#bySession.get(sessionId) ?? [])]
    for (const grant of grants) this.#remove(grant)
    return grants
  }

  /**
   * Watches one grant while a renewal of it is in flight: a renewal's late answer must not write
   * back into the book what was released meanwhile (P-20).
   *
   * @returns to be called once, when the answer is there: whether the grant's end was seen meanwhile
   */
  follow(key: string, fencingToken: bigint, sessionId: string): () => boolean {
    const known = this.find(key, fencingToken)
    if (known !== undefined) return () => this.find(key, fencingToken) !== known
    const renewal: Renewal = { key, fencingToken, sessionId, ended: false }
    this.#renewals.add(renewal)
    return () => {
      this.#renewals.delete(renewal)
      return renewal.ended
    }
  }

  /** The grants whose leases have ended by `nanos` unless somebody else prolonged them. */
  endedBy(nanos: bigint): readonly Grant[] {
    return [...this.#byKey.values()].filter((grant) => grant.endsAtNanos <= nanos)
  }

  #add(grant: Grant): void {
    this.#byKey.set(grant.key, grant)
    const siblings = this.#bySession.get(grant.sessionId)
    if (siblings === undefined) this.#bySession.set(grant.sessionId, new Set([grant]))
    else siblings.add(grant)
    if (this.#byKey.size <= this.#limit) return
    const oldest = this.#byKey.values().next().value
    if (oldest !== undefined) this.#remove(oldest)
  }

  #remove(grant: Grant): void {
    this.#byKey.delete(grant.key)
    const siblings = this.#bySession.get(grant.sessionId)
    siblings?.delete(grant)
    if (siblings?.size === 0) this.#bySession.delete(grant.sessionId)
  }
}
