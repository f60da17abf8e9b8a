import { createTestDatabase, type TestDatabase } from '@dlock/services'
import { runStoreCase, storeCases } from '@dlock/tck'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { editedPool } from './edited-pool.ts'
import { fixtureOf, migratedSchema, type Schema } from './schema.ts'

/** The conformance kit is worth what it refuses: each row breaks one passage of the SQL. */

let database: TestDatabase
let schema: Schema

beforeAll(async () => {
  database = await createTestDatabase()
  schema = await migratedSchema(database.url)
})

afterAll(async () => {
  await schema[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

const MINT = `nextval('fencing_token_seq')`

const BROKEN: readonly {
  readonly how: string
  readonly edits: readonly (readonly [string, string])[]
  readonly caughtBy: RegExp
}[] = [
  {
    how: 'a take-over that keeps the old token',
    edits: [
      [`THEN e.fencing_token ELSE ${MINT} END`, 'THEN e.fencing_token ELSE e.fencing_token END'],
    ],
    caughtBy: /P-16: after a take-over/,
  },
  {
    how: 'a take-over with the token that the insertion took, from before the row was locked',
    edits: [[`THEN e.fencing_token ELSE ${MINT} END`, 'THEN e.fencing_token ELSE 1 END']],
    caughtBy: /P-16: after a take-over/,
  },
  {
    how: 'a repetition that mints',
    edits: [[`THEN e.fencing_token ELSE ${MINT} END`, `THEN ${MINT} ELSE ${MINT} END`]],
    caughtBy: /decision 3: a session that asks again for its live grant/,
  },
  {
    how: 'a repetition that shortens the lease',
    edits: [['GREATEST(EXCLUDED.expires_at, CASE', 'LEAST(EXCLUDED.expires_at, CASE']],
    caughtBy: /decision 3: asking again never shortens/,
  },
  {
    how: 'a release that ignores the token',
    edits: [
      [
        "AND e.fencing_token = a.token AND e.expires_at > '-infinity'::timestamptz\n  RETURNING e.lock_key, CASE WHEN wanted",
        "AND e.expires_at > '-infinity'::timestamptz\n  RETURNING e.lock_key, CASE WHEN wanted",
      ],
    ],
    caughtBy: /FR-05: releasing with any other token/,
  },
  {
    how: 'an extension that ignores the token',
    edits: [['AND e.fencing_token = a.token AND e.expires_at > now()', 'AND e.expires_at > now()']],
    caughtBy: /FR-06: extending with any other token/,
  },
  {
    how: 'an extension that brings back what has expired',
    edits: [
      ['AND e.fencing_token = a.token AND e.expires_at > now()', 'AND e.fencing_token = a.token'],
    ],
    caughtBy: /FR-06: an expired grant is lost/,
  },
  {
    how: 'a heartbeat that brings a dead session back',
    edits: [['WHERE s.session_id = a.key AND s.expires_at > now()', 'WHERE s.session_id = a.key']],
    caughtBy: /a session that has expired is not brought to life/,
  },
  {
    how: 'a take-over of what lives',
    edits: [
      ['WHERE h.session_id = a.session_id OR h.expires_at <= now() OR h.lock_key IS NULL', ''],
      ['WHERE e.expires_at <= now() OR e.session_id = EXCLUDED.session_id', 'WHERE true'],
    ],
    caughtBy: /FR-01: a key that another session holds is refused/,
  },
  {
    how: 'a transfer that keeps the old token',
    edits: [[`WHEN a.lives THEN ${MINT} ELSE`, 'WHEN a.lives THEN e.fencing_token ELSE']],
    caughtBy: /transfer/,
  },
]

test.each(BROKEN)('seen red: $how', async ({ edits, caughtBy }) => {
  const fixture = fixtureOf(() => schema, { through: (pool) => editedPool(pool, ...edits) })
  const cases = storeCases.filter(({ name }) => caughtBy.test(name))
  const failures: string[] = []
  for (const each of cases) {
    await runStoreCase(each, fixture).catch(() => failures.push(each.name))
  }
  expect(failures, `of ${cases.map(({ name }) => name).join(', ')}`).not.toEqual([])
})
