import { FencedOutError, type ListingCapability, type Page } from '@dlock/lock-api'
import {
  DEFAULT_PAGE_LIMIT,
  Failure,
  fencedOutFailure,
  formatFencingToken,
  type PageInput,
  type PageOf,
  parseFencingToken,
} from '@dlock/protocol'
import type { CallContext } from './call.ts'
import { type Desk, type Handlers, note } from './handlers.ts'
import { invalid } from './invalid.ts'
import { lockViewOf, revocationViewOf, sessionViewOf } from './views.ts'

export function operatorHandlers(
  desk: Desk,
): Handlers<'revoke' | 'listLocks' | 'listSessions' | 'listRevocations'> {
  const { engine } = desk
  return {
    revoke: {
      role: 'operator',
      async answer(context, { key, operator, reason, expectedToken }) {
        checkOperatorIs(context, operator)
        const expected = expectedToken === undefined ? undefined : parseFencingToken(expectedToken)
        const revocation = await engine
          .revoke(key, operator, reason, expected)
          .catch(refusedAs('expectedToken', 'cannot be compared by this store'))
        if (revocation.kind === 'not-held') {
          throw new Failure('NOT_FOUND', `nobody holds ${JSON.stringify(key)}`)
        }
        if (revocation.kind === 'stale') {
          const error = new FencedOutError(key, expected ?? 0n, revocation.currentToken)
          throw fencedOutFailure(error, { type: 'lock', id: key, ownerId: context.ownerId })
        }
        const { previousToken, newTokenFloor, previousOwnerId } = revocation.outcome
        if (previousToken === undefined || newTokenFloor === undefined) {
          throw new TypeError('a revocation that happened has a token and a floor')
        }
        const revokedToken = formatFencingToken(previousToken)
        const floor = formatFencingToken(newTokenFloor)
        note(desk, context, 'lock_revoked', {
          key,
          operator,
          reason,
          previousOwnerId,
          previousToken: revokedToken,
          newTokenFloor: floor,
        })
        return { revokedToken, newTokenFloor: floor, revocationId: revocation.revocationId }
      },
    },

    listLocks: {
      role: 'viewer',
      answer: (_, { prefix = '', ...page }) =>
        listed(page, lockViewOf, (query) => listing(desk).listLocks({ ...query, prefix })),
    },
    listSessions: {
      role: 'operator',
      answer: (_, page) =>
        listed(page, sessionViewOf, (query) => listing(desk).listSessions(query)),
    },
    listRevocations: {
      role: 'operator',
      answer: (_, page) =>
        listed(page, revocationViewOf, (query) => listing(desk).listRevocations(query)),
    },
  }
}

/** An authenticated operator cannot revoke in another's name. */
function checkOperatorIs({ identity }: CallContext, operator: string): void {
  if (identity.name === undefined || identity.name === operator) return
  throw new Failure('FORBIDDEN', 'operator must be the name that the caller is known by')
}

function listing({ engine }: Desk): ListingCapability {
  if (engine.listing === undefined) {
    throw new Failure('NOT_FOUND', `the store, ${engine.backendId}, keeps no lists`)
  }
  return engine.listing
}

async function listed<Item, View>(
  { cursor, limit = DEFAULT_PAGE_LIMIT }: PageInput,
  view: (item: Item) => View,
  fetch: (query: { cursor: string | undefined; limit: number }) => Promise<Page<Item>>,
): Promise<PageOf<View>> {
  const { items, nextCursor } = await fetch({ cursor, limit }).catch(
    refusedAs('cursor', 'must come from the page before'),
  )
  return { items: items.map(view), ...(nextCursor !== undefined && { nextCursor }) }
}

/** What only the store can judge, and refused with a `RangeError`, is the caller's mistake. */
function refusedAs(field: string, message: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof RangeError)) throw error
    throw invalid([{ field, message }])
  }
}
