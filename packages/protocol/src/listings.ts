import Type from 'typebox'
import { countField, fencingTokenField, keyField, ownerIdField, timeField } from './fields.ts'
import { DEFAULT_PAGE_LIMIT, MAX_PAGE_LIMIT } from './limits.ts'
import { type HeldLock, heldLock } from './lock-messages.ts'
import type { Operation } from './operations.ts'
import { Schema } from './schema.ts'

/** L9: paged lists for operators. Advisory, over HTTP only. */
export interface Listings {
  readonly listLocks: Operation<ListLocksInput, PageOf<HeldLock>>
  readonly listSessions: Operation<PageInput, PageOf<SessionView>>
  readonly listRevocations: Operation<PageInput, PageOf<RevocationView>>
}

/** L9: a page of a list. */
export interface PageInput {
  /** `nextCursor` of the page before; absent for the first. */
  readonly cursor?: string
  readonly limit?: number
}

/** L9: the locks that are held. */
export interface ListLocksInput extends PageInput {
  /** Keys that begin with exactly this. */
  readonly prefix?: string
}

/** A page. Advisory: what changed between two pages may be in both or in none. */
export interface PageOf<Item> {
  readonly items: readonly Item[]
  /** Absent on the last page. */
  readonly nextCursor?: string
}

/** A session, without its id: that is a secret. */
export interface SessionView {
  readonly sessionRef: string
  readonly ownerId: string
  readonly createdAt: string
  readonly expiresAt: string
  readonly heldLockCount: number
}

/** An entry of the audit. */
export interface RevocationView {
  readonly revocationId: string
  readonly key: string
  readonly previousOwnerId: string
  readonly previousToken: string
  readonly newTokenFloor: string
  readonly operator: string
  readonly reason: string
  readonly revokedAt: string
}

const closed = { additionalProperties: false }
const pageFields = {
  cursor: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 2_048,
      description: '`nextCursor` of the page before.',
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_PAGE_LIMIT,
      description: `At most this many items; ${DEFAULT_PAGE_LIMIT} when absent.`,
    }),
  ),
}
const prefixField = Type.Optional(
  // No key has either, and not every store can look for them.
  Type.Refine(
    Type.String({ maxLength: 512, description: 'Keys that begin with exactly this.' }),
    (text) => /^[^\p{Cc}\p{Cs}]*$/u.test(text),
    () => 'must hold no control character and no lone surrogate',
  ) as Type.TRefine<Type.TString>,
)

function page<Item>(item: Schema<Item>): Schema<PageOf<Item>> {
  const type = Type.Object({
    items: Type.Array(Type.Unsafe<Item>(item.json)),
    nextCursor: Type.Optional(Type.String()),
  })
  return Schema.of<PageOf<Item>>()(type as never)
}

const sessionView: Schema<SessionView> = Schema.of<SessionView>()(
  Type.Object({
    sessionRef: Type.String({ description: 'Names the session to people. Not its id.' }),
    ownerId: ownerIdField,
    createdAt: timeField,
    expiresAt: timeField,
    heldLockCount: countField,
  }),
)
const revocationView: Schema<RevocationView> = Schema.of<RevocationView>()(
  Type.Object({
    revocationId: Type.String(),
    key: keyField,
    previousOwnerId: ownerIdField,
    previousToken: fencingTokenField,
    newTokenFloor: fencingTokenField,
    operator: Type.String(),
    reason: Type.String(),
    revokedAt: timeField,
  }),
)

const listing = {
  number: 'L9',
  method: 'GET',
  headers: {},
  status: 200,
  write: false,
  repeatable: true,
  failures: [],
} as const

/** How the three lists are spelled. */
export const listings: Listings = {
  listLocks: {
    ...listing,
    summary: 'The locks that are held, in order of their keys',
    path: '/v1/locks',
    input: Schema.of<ListLocksInput>()(Type.Object({ prefix: prefixField, ...pageFields }, closed)),
    output: page(heldLock),
  },
  listSessions: {
    ...listing,
    summary: 'The sessions that live',
    path: '/v1/sessions',
    input: Schema.of<PageInput>()(Type.Object(pageFields, closed)),
    output: page(sessionView),
  },
  listRevocations: {
    ...listing,
    summary: 'The revocations, for the audit',
    path: '/v1/revocations',
    input: Schema.of<PageInput>()(Type.Object(pageFields, closed)),
    output: page(revocationView),
  },
}
