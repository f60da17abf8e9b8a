import { setImmediate as nextTurn } from 'node:timers/promises'
import { LockHandle, LockInfo } from '@dlock/lock-api'
import type { MemoryStore } from '@dlock/store-memory'
import { type BrokenStore, later, OnClock, withToken } from './broken-store.ts'

/** The row is overwritten and keeps its token: `nextval` is not evaluated in the update branch. */
class TakeOverReusesToken extends OnClock {
  readonly #recorded = new Map<string, bigint>()

  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const grant = await super.tryInsert(...asked)
    if (grant === undefined) return undefined
    const token = this.#recorded.get(grant.key) ?? grant.fencingToken
    this.#recorded.set(grant.key, token)
    return withToken(grant, token)
  }

  override async deleteIfOwner(key: string, fencingToken: bigint) {
    this.#recorded.delete(key)
    return super.deleteIfOwner(key, fencingToken)
  }
}

class ReleaseIgnoresToken extends OnClock {
  override async deleteIfOwner(key: string, fencingToken: bigint) {
    const current = await this.read(key)
    return super.deleteIfOwner(key, current?.fencingToken ?? fencingToken)
  }
}

class ExtendIgnoresToken extends OnClock {
  override async extend(key: string, fencingToken: bigint, ttlMs: number) {
    const current = await this.read(key)
    return super.extend(key, current?.fencingToken ?? fencingToken, ttlMs)
  }
}

/** `UPDATE … WHERE key AND token`, without `AND expires_at > now()`. */
class ExtendResurrectsExpired extends OnClock {
  readonly #issued = new Map<bigint, LockHandle>()

  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const grant = await super.tryInsert(...asked)
    if (grant !== undefined) this.#issued.set(grant.fencingToken, grant)
    return grant
  }

  override async extend(key: string, fencingToken: bigint, ttlMs: number) {
    const extended = await super.extend(key, fencingToken, ttlMs)
    const old = this.#issued.get(fencingToken)
    if (extended !== undefined || old?.key !== key) return extended
    const again = await super.tryInsert(key, old.ownerId, old.sessionId, ttlMs)
    return again && withToken(again, fencingToken)
  }
}

class LeaseEndsEarly extends OnClock {
  override async tryInsert(key: string, ownerId: string, sessionId: string, ttlMs: number) {
    const grant = await super.tryInsert(key, ownerId, sessionId, ttlMs > 1 ? ttlMs - 1 : ttlMs)
    return grant && later(grant, ttlMs > 1 ? 1 : 0)
  }
}

class LeaseEndsLate extends OnClock {
  override async tryInsert(key: string, ownerId: string, sessionId: string, ttlMs: number) {
    const grant = await super.tryInsert(key, ownerId, sessionId, ttlMs + 2)
    return grant && later(grant, -2)
  }
}

/** Expiry becomes true only when the reaper has been. */
class ExpiryNeedsReaper extends OnClock {
  readonly #recorded = new Map<string, LockHandle>()

  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const recorded = this.#recorded.get(asked[0])
    if (recorded !== undefined && recorded.sessionId !== asked[2]) return undefined
    const grant = await super.tryInsert(...asked)
    if (grant !== undefined) this.#recorded.set(grant.key, grant)
    return grant
  }

  override async deleteIfOwner(key: string, fencingToken: bigint) {
    if (this.#recorded.get(key)?.fencingToken === fencingToken) this.#recorded.delete(key)
    return super.deleteIfOwner(key, fencingToken)
  }

  override async revoke(key: string, operator: string, reason: string) {
    this.#recorded.delete(key)
    return super.revoke(key, operator, reason)
  }

  override async closeSession(sessionId: string) {
    for (const key of await this.locksOf(sessionId)) this.#recorded.delete(key)
    return super.closeSession(sessionId)
  }

  override async reapExpired(now: Date) {
    for (const key of this.#recorded.keys()) {
      if ((await this.read(key)) === undefined) this.#recorded.delete(key)
    }
    return super.reapExpired(now)
  }
}

class AskingAgainMints extends OnClock {
  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const [key, , sessionId] = asked
    const current = await this.read(key)
    if (current !== undefined && (await this.locksOf(sessionId)).has(key)) {
      await this.deleteIfOwner(key, current.fencingToken)
    }
    return super.tryInsert(...asked)
  }
}

/** The row is written anew, with the old token and the new, shorter, expiry. */
class AskingAgainShortens extends OnClock {
  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const [key, , sessionId] = asked
    const held = (await this.locksOf(sessionId)).has(key) ? await this.read(key) : undefined
    if (held !== undefined) await this.deleteIfOwner(key, held.fencingToken)
    const grant = await super.tryInsert(...asked)
    return grant && withToken(grant, held?.fencingToken ?? grant.fencingToken)
  }
}

/** The answer says the lease runs from now, the record that it runs from the first time. */
class AskingAgainOnlyPretends extends OnClock {
  override async tryInsert(key: string, ownerId: string, sessionId: string, ttlMs: number) {
    const held = (await this.locksOf(sessionId)).has(key)
    const grant = await super.tryInsert(key, ownerId, sessionId, held ? 1 : ttlMs)
    return grant && later(grant, held ? ttlMs - 1 : 0)
  }
}

class OwnerNameIsIdentity extends OnClock {
  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const grant = await super.tryInsert(...asked)
    const held = await this.read(asked[0])
    if (grant !== undefined || held?.ownerId !== asked[1]) return grant
    return new LockHandle(held.key, held.ownerId, asked[2], held.fencingToken, 1n, held.expiresAt)
  }
}

/** Looks, and then leaps. */
class InsertIsTwoSteps extends OnClock {
  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const held = await this.read(asked[0])
    if (held !== undefined) return super.tryInsert(...asked)
    await nextTurn()
    const meanwhile = await this.read(asked[0])
    if (meanwhile !== undefined) await super.deleteIfOwner(asked[0], meanwhile.fencingToken)
    return super.tryInsert(...asked)
  }
}

class BatchFailsTogether extends OnClock {
  readonly #batch: Promise<unknown>[] = []

  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const own = super.tryInsert(...asked)
    this.#batch.push(own)
    await Promise.all(this.#batch).finally(() => this.#batch.splice(0))
    return own
  }
}

class DeadlineCountsFromReply extends OnClock {
  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const grant = await super.tryInsert(...asked)
    return grant && later(grant, 1)
  }
}

class ReaperTakesWhatLives extends OnClock {
  override async reapExpired(now: Date) {
    let reaped = await super.reapExpired(now)
    const page = await this.all.listing.listLocks({ prefix: '', cursor: undefined, limit: 1_000 })
    for (const info of page.items.filter(({ expiresAt }) => expiresAt <= now)) {
      reaped += (await this.deleteIfOwner(info.key, info.fencingToken)) ? 1 : 0
    }
    return reaped
  }
}

const FAR_FUTURE = new Date('9999-01-01T00:00:00Z')

class ReaperIgnoresInstant extends OnClock {
  override async reapExpired() {
    return super.reapExpired(FAR_FUTURE)
  }
}

/** Each replica counts what it finds before it deletes. */
class ReapersCountTogether extends OnClock {
  override async reapExpired(now: Date) {
    this.#running ??= super.reapExpired(now).finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  #running: Promise<number> | undefined
}

class AnybodyIsGranted extends OnClock {
  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const current = await this.read(asked[0])
    if (current !== undefined) await this.deleteIfOwner(asked[0], current.fencingToken)
    return super.tryInsert(...asked)
  }
}

class HandleNamesNobody extends OnClock {
  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const grant = await super.tryInsert(...asked)
    if (grant === undefined) return undefined
    const { key, sessionId, fencingToken, clientDeadlineNanos, serverExpiry } = grant
    return new LockHandle(key, 'nobody', sessionId, fencingToken, clientDeadlineNanos, serverExpiry)
  }
}

class ExtendMints extends OnClock {
  override async extend(key: string, fencingToken: bigint, ttlMs: number) {
    const extended = await super.extend(key, fencingToken, ttlMs)
    return extended && withToken(extended, fencingToken + 1n)
  }
}

class ExtendOnlyPretends extends OnClock {
  override async extend(key: string, fencingToken: bigint, ttlMs: number) {
    const extended = await super.extend(key, fencingToken, 1)
    return extended && later(extended, ttlMs - 1)
  }
}

class ExtendShortens extends OnClock {
  override async extend(key: string, fencingToken: bigint, ttlMs: number) {
    const extended = await super.extend(key, fencingToken, ttlMs)
    if (extended === undefined) return undefined
    await this.deleteIfOwner(key, fencingToken)
    const again = await this.tryInsert(key, extended.ownerId, extended.sessionId, ttlMs)
    return again && withToken(again, fencingToken)
  }
}

class ReadShowsTheWrongExpiry extends OnClock {
  override async read(key: string) {
    const info = await super.read(key)
    if (info === undefined) return undefined
    return new LockInfo(key, info.ownerId, info.fencingToken, info.acquiredAt, info.acquiredAt, 0)
  }
}

/** As a timer of the runtime does. */
class LongTtlsOverflow extends OnClock {
  override async tryInsert(key: string, ownerId: string, sessionId: string, ttlMs: number) {
    return super.tryInsert(key, ownerId, sessionId, ttlMs < 2 ** 31 ? ttlMs : 1)
  }
}

class NameChanges extends OnClock {
  #named = 0

  override backendId() {
    this.#named += 1
    return `memory-${this.#named}`
  }
}

export const grantsBroken: readonly BrokenStore[] = [
  {
    store: TakeOverReusesToken,
    fails: [
      'P-24: after expiry the next token is above, though the store was empty in between',
      'P-16: after a take-over the old holder is told lost and not held, and harms nobody',
    ],
  },
  {
    store: ReleaseIgnoresToken,
    fails: [
      'FR-05: releasing with any other token, or under another key, removes nothing',
      'FR-05: a release that arrives twice does not touch the next grant',
      'P-16: after a take-over the old holder is told lost and not held, and harms nobody',
    ],
  },
  {
    store: ExtendIgnoresToken,
    fails: [
      'FR-06: extending with any other token, or under another key, says lost and harms nobody',
      'P-16: after a take-over the old holder is told lost and not held, and harms nobody',
    ],
  },
  {
    store: ExtendResurrectsExpired,
    fails: [
      'FR-06: an expired grant is lost, though nobody reaped it and nobody else asked',
      'P-20: an extension that arrives after the release does not bring the lock back',
    ],
  },
  {
    store: LeaseEndsEarly,
    fails: ['FR-03, P-14: an unrenewed lease of 100 ms ends in time, and the key can be had'],
  },
  {
    store: LeaseEndsLate,
    fails: [
      'FR-06: an expired grant is lost, though nobody reaped it and nobody else asked',
      'P-16: after a take-over the old holder is told lost and not held, and harms nobody',
    ],
  },
  {
    store: ExpiryNeedsReaper,
    fails: ['FR-03, P-14: an unrenewed lease of 100 ms ends in time, and the key can be had'],
  },
  {
    store: AskingAgainMints,
    fails: [
      'decision 3: a session that asks again for its live grant gets it, with the same token',
      'decision 3: a retry that reaches another replica gets the same grant',
    ],
  },
  { store: AskingAgainShortens, fails: ['decision 3: asking again never shortens the lease'] },
  {
    store: AskingAgainOnlyPretends,
    fails: ['decision 3: the lease runs as long as the answer to the repeated question says'],
  },
  {
    store: OwnerNameIsIdentity,
    fails: ['P-17: two sessions of one owner name exclude each other, and their tokens differ'],
  },
  {
    store: InsertIsTwoSteps,
    fails: [
      'INV-06: many sessions that ask for one free key at once get exactly one grant',
      'INV-06: many sessions that take over one expired key at once get exactly one grant',
    ],
  },
  { store: BatchFailsTogether, fails: ['one caller’s failure does not fail the calls beside it'] },
  {
    store: DeadlineCountsFromReply,
    fails: ['FR-11: the deadline of a grant counts from before the request was sent'],
  },
  {
    store: ReaperTakesWhatLives,
    fails: ['reaping never takes what lives, even for a caller whose clock runs far ahead'],
  },
  {
    store: ReaperIgnoresInstant,
    fails: [
      'reaping leaves what had not expired at the instant given',
      'an instant that is no date is rejected by type',
    ],
  },
  {
    store: ReapersCountTogether,
    fails: ['reaping on many replicas at once counts each expired grant once'],
  },
  {
    store: AnybodyIsGranted,
    fails: [
      'FR-01: a key that another session holds is refused, and its holder is unharmed',
      'FR-02, INV-06: workers that contend never overlap, and each holds a higher token',
      'any history of calls gets the answers of a simple model',
    ],
  },
  { store: HandleNamesNobody, fails: ['a free key is granted, and the handle says to whom'] },
  {
    store: ExtendMints,
    fails: ['FR-06: extending keeps the token and everything else, and expires no earlier'],
  },
  { store: ExtendOnlyPretends, fails: ['FR-06: extending prolongs the lease'] },
  { store: ExtendShortens, fails: ['FR-06: extending never shortens the lease'] },
  {
    store: ReadShowsTheWrongExpiry,
    fails: ['FR-07: reading shows the live grant, and nothing of a key that nobody holds'],
  },
  { store: LongTtlsOverflow, fails: ['P-14: a lease of 30 days does not end at once'] },
  { store: NameChanges, fails: ['the backend has a name, for a metric label, and keeps it'] },
]
