import { missingFor, type StoreFixture, storeCases } from '@dlock/tck'
import { describe, expect, test } from 'vitest'
import { matching, membersOf, repository } from './repository.ts'

/**
 * Every store runs every case of the conformance kit, on everything that it is promised to run on:
 * the kit is data, so the list of names is the same for each. What a fixture declares is what its
 * store does, which the kit itself tests; what it may leave out is here, by name.
 */
interface Cell {
  /** The test file that runs the kit. */
  readonly file: string
  /** Where the fixture lists its capabilities, if not there. */
  readonly declaredIn?: string
  /** The cases that have nothing to see. */
  readonly skipped: readonly string[]
}

// PostgreSQL counts in milliseconds and is never late by its own clock: there is nothing to declare.
const EXACT = [
  'the bounds of TTLs are whole milliseconds, and the shortest lease keeps the granularity',
]

const MATRIX: Readonly<Record<string, Cell>> = {
  memory: { file: 'packages/store-memory/test/memory-store.test.ts', skipped: [] },
  // The system's, where there is one.
  PostgreSQL: {
    file: 'packages/store-postgres/test/conformance.test.ts',
    declaredIn: 'packages/store-postgres/test/schema.ts',
    skipped: EXACT,
  },
  'embedded PostgreSQL': {
    file: 'packages/store-postgres/test/embedded.test.ts',
    declaredIn: 'packages/store-postgres/test/schema.ts',
    skipped: EXACT,
  },
  'PostgreSQL behind PgBouncer': {
    file: 'packages/store-postgres/test/pgbouncer.test.ts',
    declaredIn: 'packages/store-postgres/test/schema.ts',
    skipped: EXACT,
  },
  etcd: { file: 'packages/store-etcd/test/etcd-store.test.ts', skipped: [] },
}

describe.each(Object.entries(MATRIX))('%s', (_, { file, declaredIn = file, skipped }) => {
  test('runs the kit', () => {
    expect(repository.get(file)).toMatch(/^describeLockStore\(/m)
  })

  test('skips no case but those that are said to have nothing to see', () => {
    const capabilities = declared(repository.get(declaredIn) ?? '')
    const missing = storeCases.filter((rule) => missingFor(rule, { capabilities }).length > 0)
    expect(missing.map(({ name }) => name)).toEqual(skipped)
  })
})

test('no store and no run of the kit is outside the matrix', () => {
  const files = Object.values(MATRIX).map(({ file }) => file)
  const runs = matching(repository, /^packages\/store-[^/]+\/test\/.*\.ts$/)
    .filter(([, source]) => /^describeLockStore\(/m.test(source))
    .map(([path]) => path)
  expect(runs.toSorted()).toEqual(files.toSorted())
  const stores = membersOf(repository).filter(({ name }) => name.startsWith('store-'))
  const tested = stores.filter(({ folder }) => files.some((file) => file.startsWith(`${folder}/`)))
  expect(tested).toEqual(stores)
})

/** The list of capabilities as the fixture spells it. */
function declared(source: string): StoreFixture['capabilities'] {
  const [, list = ''] = /(?:capabilities: |CAPABILITIES = )\[([^\]]*)\]/.exec(source) ?? []
  return [...list.matchAll(/'(\w+)'/g)].map(
    ([, name]) => name,
  ) as unknown as StoreFixture['capabilities']
}
