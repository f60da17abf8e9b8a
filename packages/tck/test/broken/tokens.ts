import { LockOutcome, type StoreCapabilities } from '@dlock/lock-api'
import type { MemoryStore } from '@dlock/store-memory'
import { type BrokenStore, OnClock, withToken } from './broken-store.ts'

class TokensRestartWhenEmpty extends OnClock {
  #base = 0n

  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const { items } = await this.all.listing.listLocks({ prefix: '', cursor: undefined, limit: 1 })
    if (items.length === 0) this.#base = await this.all.tokens.highestToken()
    const grant = await super.tryInsert(...asked)
    return grant && withToken(grant, grant.fencingToken - this.#base)
  }
}

class TokensAreRounded extends OnClock {
  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const grant = await super.tryInsert(...asked)
    return grant && withToken(grant, BigInt(Number(grant.fencingToken)))
  }
}

/** `ORDER BY token::text`: past 9 the highest is still 9. */
class TokensAreCompared extends OnClock {
  #highest = '0'

  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const grant = await super.tryInsert(...asked)
    const next = `${BigInt(this.#highest) + 1n}`
    if (next > this.#highest) this.#highest = next
    return grant && withToken(grant, BigInt(this.#highest))
  }
}

class TokensMoveBack extends OnClock {
  #shift = 0n

  override async tryInsert(...asked: Parameters<MemoryStore['tryInsert']>) {
    const grant = await super.tryInsert(...asked)
    return grant && withToken(grant, grant.fencingToken + this.#shift)
  }

  override capabilities(): StoreCapabilities {
    const { tokens } = this.all
    const advanceTokens = async (above: bigint) => {
      this.#shift = above - (await tokens.highestToken())
      return above
    }
    return { ...this.all, tokens: { highestToken: () => tokens.highestToken(), advanceTokens } }
  }
}

class TokensRunOut extends OnClock {
  override capabilities(): StoreCapabilities {
    const { tokens } = this.all
    const advanceTokens = async (above: bigint) =>
      tokens.advanceTokens(above).catch(() => tokens.highestToken())
    return { ...this.all, tokens: { highestToken: () => tokens.highestToken(), advanceTokens } }
  }
}

class RevokeLeavesTheGrant extends OnClock {
  override async revoke(key: string, operator: string, reason: string): Promise<LockOutcome> {
    const held = await this.read(key)
    if (held === undefined) return super.revoke(key, operator, reason)
    const token = held.fencingToken
    return new LockOutcome(key, true, held.ownerId, token, token + 1n)
  }
}

class FloorIsNotKept extends OnClock {
  override async revoke(key: string, operator: string, reason: string): Promise<LockOutcome> {
    const { revoked, previousOwnerId, previousToken } = await super.revoke(key, operator, reason)
    if (!revoked || previousToken === undefined) return LockOutcome.notHeld(key)
    return new LockOutcome(key, true, previousOwnerId, previousToken, previousToken + 1_000n)
  }
}

class RevocationIsNotRecorded extends OnClock {
  override async revoke(key: string, operator: string, reason: string): Promise<LockOutcome> {
    const held = await this.read(key)
    if (held === undefined) return super.revoke(key, operator, reason)
    await this.deleteIfOwner(key, held.fencingToken)
    const floor = await this.all.tokens.advanceTokens((await this.all.tokens.highestToken()) + 1n)
    return new LockOutcome(key, true, held.ownerId, held.fencingToken, floor)
  }
}

class RevokeIgnoresExpectation extends OnClock {
  override capabilities(): StoreCapabilities {
    const { audit } = this.all
    return {
      ...this.all,
      audit: {
        revokeExpecting: (key, operator, reason) =>
          audit.revokeExpecting(key, operator, reason, undefined),
      },
    }
  }
}

class RevokesWhatNobodyHolds extends OnClock {
  override async revoke(key: string, operator: string, reason: string) {
    const outcome = await super.revoke(key, operator, reason)
    return outcome.revoked ? outcome : new LockOutcome(key, true, 'nobody', 1n, 2n)
  }
}

export const tokensBroken: readonly BrokenStore[] = [
  {
    store: TokensRestartWhenEmpty,
    fails: [
      'P-24: after release the next token is above, though the store was empty in between',
      'P-24: after expiry and reaping the next token is above, though the store was empty in between',
      'P-24: after the end of its session the next token is above, though the store was empty in between',
    ],
  },
  {
    store: TokensAreRounded,
    fails: ['P-25: a token above 2^53 is exact, and its neighbours are other tokens'],
  },
  {
    store: TokensAreCompared,
    fails: ['P-25: tokens rise as numbers do, past 9, 99 and their like'],
  },
  { store: TokensMoveBack, fails: ['INV-04: the tokens are never moved back'] },
  {
    store: TokensRunOut,
    fails: ['P-28: the tokens are not advanced to where none is left to issue'],
  },
  {
    store: RevokeLeavesTheGrant,
    fails: [
      'FR-08: revoking says whose grant it was, and the holder is lost at once',
      'one grant revoked many times at once is revoked once',
    ],
  },
  {
    store: FloorIsNotKept,
    fails: ['INV-04: every token after a revocation is above its floor, the old holder’s too'],
  },
  {
    store: RevocationIsNotRecorded,
    fails: ['FR-08: each revocation leaves one audit record, and a refused one leaves none'],
  },
  {
    store: RevokeIgnoresExpectation,
    fails: [
      'FR-08: a revocation that expects another grant changes nothing and names the current one',
    ],
  },
  {
    store: RevokesWhatNobodyHolds,
    fails: [
      'FR-08: revoking what nobody holds says so and changes nothing',
      'FR-08: an expired grant, or a dead session’s, cannot be revoked any more',
    ],
  },
]
