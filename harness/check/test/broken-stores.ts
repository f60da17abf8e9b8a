import { LockHandle } from '@dlock/lock-api'
import { MemoryStore } from '@dlock/store-memory'
import type { Clock } from '@dlock/system'

/** The memory store, broken in one way each; each way is one in which somebody's store was broken. */
abstract class BrokenStore extends MemoryStore {
  protected readonly clock: Clock

  constructor(clock: Clock) {
    super({ clock })
    this.clock = clock
  }
}

/** The row is overwritten and keeps its token: `nextval` is not evaluated in the update branch. */
class TakeOverReusesToken extends BrokenStore {
  readonly #recorded = new Map<string, bigint>()
  readonly #real = new Map<bigint, bigint>()

  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const grant = await super.tryInsert(...asked)
    if (grant === undefined) return undefined
    const token = this.#recorded.get(grant.key) ?? grant.fencingToken
    this.#recorded.set(grant.key, token)
    this.#real.set(token, grant.fencingToken)
    return withToken(grant, token)
  }

  override async extend(key: string, token: bigint, ttlMs: number) {
    const grant = await super.extend(key, this.#real.get(token) ?? token, ttlMs)
    return grant && withToken(grant, token)
  }

  override async deleteIfOwner(key: string, token: bigint) {
    const deleted = await super.deleteIfOwner(key, this.#real.get(token) ?? token)
    if (deleted) this.#recorded.delete(key)
    return deleted
  }
}

/** The counter lives in the row, and dies with it. */
class TokensRestart extends BrokenStore {
  readonly #rows = new Map<string, { token: bigint; real: bigint }>()

  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const grant = await super.tryInsert(...asked)
    if (grant === undefined) return undefined
    const row = this.#rows.get(grant.key)
    const isSame = row?.real === grant.fencingToken
    const token = (row?.token ?? 0n) + (isSame ? 0n : 1n)
    this.#rows.set(grant.key, { token, real: grant.fencingToken })
    return withToken(grant, token)
  }

  override async extend(key: string, token: bigint, ttlMs: number) {
    const grant = await super.extend(key, this.#realOf(key, token), ttlMs)
    return grant && withToken(grant, token)
  }

  override async deleteIfOwner(key: string, token: bigint) {
    const deleted = await super.deleteIfOwner(key, this.#realOf(key, token))
    if (deleted) this.#rows.delete(key)
    return deleted
  }

  #realOf(key: string, token: bigint): bigint {
    const row = this.#rows.get(key)
    return row?.token === token ? row.real : 2n ** 62n
  }
}

class ReleaseIgnoresToken extends BrokenStore {
  override async deleteIfOwner(key: string, token: bigint) {
    const current = await this.read(key)
    return super.deleteIfOwner(key, current?.fencingToken ?? token)
  }
}

/** `UPDATE … WHERE key AND token`, without `AND expires_at > now()`. */
class ExtendResurrectsExpired extends BrokenStore {
  readonly #issued = new Map<bigint, LockHandle>()

  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const grant = await super.tryInsert(...asked)
    if (grant !== undefined) this.#issued.set(grant.fencingToken, grant)
    return grant
  }

  override async extend(key: string, token: bigint, ttlMs: number) {
    const extended = await super.extend(key, token, ttlMs)
    const old = this.#issued.get(token)
    if (extended !== undefined || old === undefined) return extended
    const again = await super.tryInsert(key, old.ownerId, old.sessionId, ttlMs)
    return again && withToken(again, token)
  }
}

/** Looks, and then leaps. */
class InsertIsTwoSteps extends BrokenStore {
  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const held = await this.read(asked[0])
    if (held !== undefined) return super.tryInsert(...asked)
    await new Promise<void>((resolve) => this.clock.setTimer(5, resolve))
    const meanwhile = await this.read(asked[0])
    if (meanwhile !== undefined) await super.deleteIfOwner(asked[0], meanwhile.fencingToken)
    return super.tryInsert(...asked)
  }
}

class AskingAgainMints extends BrokenStore {
  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const [key, , sessionId] = asked
    const current = await this.read(key)
    if (current !== undefined && (await this.locksOf(sessionId)).has(key)) {
      await this.deleteIfOwner(key, current.fencingToken)
    }
    return super.tryInsert(...asked)
  }
}

class LeaseEndsEarly extends BrokenStore {
  override async tryInsert(key: string, ownerId: string, sessionId: string, ttlMs: number) {
    const missingMs = Math.floor(ttlMs / 3)
    const grant = await super.tryInsert(key, ownerId, sessionId, ttlMs - missingMs)
    return grant && later(grant, missingMs)
  }
}

/** The lease is counted from when the answer arrives: half a lease later than from the sending. */
class DeadlineFromReply extends BrokenStore {
  override async tryInsert(key: string, ownerId: string, sessionId: string, ttlMs: number) {
    const grant = await super.tryInsert(key, ownerId, sessionId, ttlMs)
    return grant && later(grant, ttlMs / 2)
  }
}

/** The session ends, and its grants stay until their leases are over. */
class CloseKeepsGrants extends BrokenStore {
  override async closeSession() {
    return 0
  }
}

/** A revocation is recorded, and the grant stays. */
class RevokeKeepsGrant extends BrokenStore {
  readonly #tokens = new Map<bigint, bigint>()

  override async revoke(key: string, operator: string, reason: string) {
    const held = (await super.read(key))?.fencingToken
    const holder = held === undefined ? undefined : this.#holders.get(held)
    const outcome = await super.revoke(key, operator, reason)
    if (held === undefined || holder === undefined) return outcome
    const again = await super.tryInsert(key, holder.ownerId, holder.sessionId, 50)
    if (again !== undefined) this.#tokens.set(held, again.fencingToken)
    return outcome
  }

  readonly #holders = new Map<bigint, LockHandle>()

  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const grant = await super.tryInsert(...asked)
    if (grant !== undefined) this.#holders.set(grant.fencingToken, grant)
    return grant
  }

  override async extend(key: string, token: bigint, ttlMs: number) {
    const grant = await super.extend(key, this.#tokens.get(token) ?? token, ttlMs)
    return grant && withToken(grant, token)
  }

  override async deleteIfOwner(key: string, token: bigint) {
    return super.deleteIfOwner(key, this.#tokens.get(token) ?? token)
  }
}

export const brokenStores: readonly (new (clock: Clock) => MemoryStore)[] = [
  TakeOverReusesToken,
  TokensRestart,
  ReleaseIgnoresToken,
  ExtendResurrectsExpired,
  InsertIsTwoSteps,
  AskingAgainMints,
  LeaseEndsEarly,
  DeadlineFromReply,
  CloseKeepsGrants,
  RevokeKeepsGrant,
]

function withToken(grant: LockHandle, token: bigint): LockHandle {
  const { key, ownerId, sessionId, clientDeadlineNanos, serverExpiry } = grant
  return new LockHandle(key, ownerId, sessionId, token, clientDeadlineNanos, serverExpiry)
}

function later(grant: LockHandle, ms: number): LockHandle {
  return grant.withClientDeadline(grant.clientDeadlineNanos + BigInt(Math.floor(ms)) * 1_000_000n)
}
