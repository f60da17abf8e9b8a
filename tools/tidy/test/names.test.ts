import { expect, test } from 'vitest'
import { type Files, matching, repository } from './repository.ts'

/** A name that says nothing about what is inside, and therefore draws everything in. */
const SAYS_NOTHING = /^(utils?|common|helpers?|types|impl|misc|shared|constants)$/

function namesThatSayNothing(files: Files): string[] {
  return [...files.keys()].filter((path) =>
    path.split('/').some((part) => SAYS_NOTHING.test(part.replace(/(\.test)?\.[^.]+$/, ''))),
  )
}

/** Siblings carry the same file names: whoever knows one store finds his way in the next. */
const EVERY_STORE = [
  'try-insert.ts',
  'extend.ts',
  'delete-if-owner.ts',
  'read.ts',
  'revoke.ts',
  'reap-expired.ts',
  'sessions.ts',
  'fencing-token.ts',
  'index.ts',
]

function filesMissingInStores(files: Files): string[] {
  const stores = new Set(
    [...files.keys()].flatMap((path) => /^packages\/store-[^/]+/.exec(path)?.[0] ?? []),
  )
  return [...stores]
    .flatMap((store) => EVERY_STORE.map((name) => `${store}/src/${name}`))
    .filter((path) => !files.has(path))
}

/** A project that the root's tsconfig.json does not list is never compiled. */
function projectsNotBuilt(files: Files): string[] {
  const listed = files.get('tsconfig.json') ?? ''
  return matching(files, /\/tsconfig\.json$/)
    .map(([path]) => path.slice(0, -'/tsconfig.json'.length))
    .filter((project) => !listed.includes(`"./${project}"`))
}

test('no file or folder has a name that says nothing', () => {
  expect(namesThatSayNothing(repository)).toEqual([])
})

test('every store has the same files', () => {
  expect(filesMissingInStores(repository)).toEqual([])
})

test('every project is built', () => {
  expect(projectsNotBuilt(repository)).toEqual([])
})

test('the rules see a name that says nothing, a store without a verb, a forgotten project', () => {
  const wrong: Files = new Map([
    ['packages/cli/src/utils.ts', ''],
    ['packages/cli/src/common/table.ts', ''],
    ['packages/cli/test/helpers.test.ts', ''],
    ['tsconfig.json', '{"references":[{"path":"./packages/cli/src"}]}'],
    ['packages/cli/src/tsconfig.json', '{}'],
    ['packages/cli/test/tsconfig.json', '{}'],
    ...EVERY_STORE.slice(1).map((name) => [`packages/store-x/src/${name}`, ''] as const),
  ])
  expect(namesThatSayNothing(wrong)).toEqual([
    'packages/cli/src/utils.ts',
    'packages/cli/src/common/table.ts',
    'packages/cli/test/helpers.test.ts',
  ])
  expect(filesMissingInStores(wrong)).toEqual(['packages/store-x/src/try-insert.ts'])
  expect(projectsNotBuilt(wrong)).toEqual(['packages/cli/test'])
})
