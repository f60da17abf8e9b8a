import {
  ContentionError,
  type ListingCapability,
  type LockInfo,
  type LockQuery,
  type Page,
  type PageQuery,
  type StoreCapabilities,
} from '@dlock/lock-api'
import { type BrokenStore, OnClock } from './broken-store.ts'

abstract class ListsItsOwnWay extends OnClock {
  protected abstract listLocks(query: LockQuery): Promise<Page<LockInfo>>

  override capabilities(): StoreCapabilities {
    const { listing } = this.all
    const changed: ListingCapability = {
      listLocks: (query) => this.listLocks(query),
      listSessions: (query) => listing.listSessions(query),
      listRevocations: (query) => listing.listRevocations(query),
    }
    return { ...this.all, listing: changed }
  }
}

/** `LIKE prefix || '%'`, unescaped. */
class PrefixIsAPattern extends ListsItsOwnWay {
  protected async listLocks({ prefix, ...query }: LockQuery): Promise<Page<LockInfo>> {
    const source = prefix
      .replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
      .replaceAll('%', '.*')
      .replaceAll('_', '.')
    const page = await this.all.listing.listLocks({ ...query, prefix: '' })
    const items = page.items.filter(({ key }) => new RegExp(`^${source}`, 'su').test(key))
    return { ...page, items }
  }
}

class ListsInUtf16Order extends ListsItsOwnWay {
  protected async listLocks(query: LockQuery): Promise<Page<LockInfo>> {
    const page = await this.all.listing.listLocks(query)
    return { ...page, items: page.items.toSorted((a, b) => (a.key < b.key ? -1 : 1)) }
  }
}

class PagesOverlap extends ListsItsOwnWay {
  protected async listLocks(query: LockQuery): Promise<Page<LockInfo>> {
    const page = await this.all.listing.listLocks(query)
    return page.nextCursor === undefined
      ? page
      : { ...page, nextCursor: page.items[0]?.key.slice(0, -1) ?? '' }
  }
}

class LastPageIsEmpty extends ListsItsOwnWay {
  protected async listLocks(query: LockQuery): Promise<Page<LockInfo>> {
    const page = await this.all.listing.listLocks(query)
    const full = page.items.length === query.limit
    return { ...page, nextCursor: full ? page.items.at(-1)?.key : undefined }
  }
}

class SessionIdsAreListed extends OnClock {
  readonly #opened: string[] = []

  override async openSession(ownerId: string, ttlMs: number) {
    const sessionId = await super.openSession(ownerId, ttlMs)
    this.#opened.push(sessionId)
    return sessionId
  }

  override capabilities(): StoreCapabilities {
    const { listing } = this.all
    const changed: ListingCapability = {
      listLocks: (query) => listing.listLocks(query),
      listRevocations: (query) => listing.listRevocations(query),
      listSessions: async (query) => {
        const page = await listing.listSessions(query)
        const items = page.items.map((info, index) => ({
          ...info,
          sessionRef: this.#opened[index] ?? info.sessionRef,
        }))
        return { ...page, items }
      },
    }
    return { ...this.all, listing: changed }
  }
}

class PageLimitIsMended extends OnClock {
  override capabilities(): StoreCapabilities {
    const { listing } = this.all
    const mend = <Query extends PageQuery>(query: Query): Query => ({
      ...query,
      limit: Math.min(Math.max(Math.trunc(query.limit) || 1, 1), 1_000),
    })
    return {
      ...this.all,
      listing: {
        listLocks: (query) => listing.listLocks(mend(query)),
        listSessions: (query) => listing.listSessions(mend(query)),
        listRevocations: (query) => listing.listRevocations(mend(query)),
      },
    }
  }
}

class NeverHealthy extends OnClock {
  override capabilities(): StoreCapabilities {
    const checkHealth = async () => Promise.reject(new ContentionError('not now'))
    return { ...this.all, health: { checkHealth } }
  }
}

class BoundsAreFractions extends OnClock {
  override capabilities(): StoreCapabilities {
    return { ...this.all, ttlBounds: { granularityMs: 0.5, minTtlMs: 1, maxLatenessMs: 0 } }
  }
}

export const listingBroken: readonly BrokenStore[] = [
  {
    store: PrefixIsAPattern,
    fails: ['P-02: a listing by prefix is exact, and in the order of the keys’ UTF-8 bytes'],
  },
  {
    store: ListsInUtf16Order,
    fails: ['P-02: a listing by prefix is exact, and in the order of the keys’ UTF-8 bytes'],
  },
  {
    store: PagesOverlap,
    fails: ['the pages of locks hold each live one once, in order, and the last says that it is'],
  },
  {
    store: LastPageIsEmpty,
    fails: ['the pages of locks hold each live one once, in order, and the last says that it is'],
  },
  { store: SessionIdsAreListed, fails: ['a listing of sessions gives away no session id'] },
  {
    store: PageLimitIsMended,
    fails: ['a page of no items, or of more than 1 000, is rejected by type'],
  },
  { store: NeverHealthy, fails: ['a store that can decide says that it is healthy'] },
  {
    store: BoundsAreFractions,
    fails: [
      'the bounds of TTLs are whole milliseconds, and the shortest lease keeps the granularity',
    ],
  },
]
