import { expect, test } from 'vitest'
import { type Files, matching, repository } from './repository.ts'

/** A fencing token's life, one step a row, and the packages in which it happens. */
const STEPS = [
  ['is', ['lock-api']],
  ['is minted', ['store-memory', 'store-postgres', 'store-etcd']],
  ['is granted', ['engine']],
  ['is spelled', ['protocol']],
  ['is carried', ['lock-client']],
  ['is checked', ['guard']],
  ['is used', ['payment-resource', 'rail-proxy']],
  ['is proven', ['model']],
] as const

/** Of the packages that exist: each keeps its step in one file, whose comment says which it is. */
function missingSteps(files: Files): string[] {
  return STEPS.flatMap(([what, packages], index) =>
    packages.flatMap((name) => {
      if (![...files.keys()].some((path) => path.split('/')[1] === name)) return []
      const [path] = fileOf(files, name)
      const step = `Life of a fencing token, step ${index + 1} of ${STEPS.length}: ${what}`
      const comment = path === undefined ? '' : (files.get(path) ?? '')
      return comment.replaceAll(/\s*\n \* /g, ' ').includes(step) ? [] : [`${name}: ${step}`]
    }),
  )
}

function fileOf(files: Files, name: string): string[] {
  return matching(files, new RegExp(`^[^/]+/${name}/src/fencing-token\\.ts$`)).map(([path]) => path)
}

/** The README's table has each step's file. */
function stepsNotInReadme(files: Files): string[] {
  const readme = files.get('README.md') ?? ''
  return STEPS.flatMap(([, packages]) => packages.flatMap((name) => fileOf(files, name))).filter(
    (path) => !readme.includes(`](${path})`),
  )
}

test('each package that touches the token says which step of its life happens there', () => {
  expect(missingSteps(repository)).toEqual([])
})

test('the README links every step', () => {
  expect(stepsNotInReadme(repository)).toEqual([])
})

test('the rules see a step that is missing, misnumbered or not linked', () => {
  const wrong: Files = new Map([
    ['packages/lock-api/src/fencing-token.ts', '/** Life of a fencing token, step 1 of 8: is. */'],
    [
      'packages/engine/src/fencing-token.ts',
      '/** Life of a fencing token, step 2 of 8: is granted',
    ],
    ['packages/guard/src/index.ts', ''],
    ['README.md', '[is](packages/lock-api/src/fencing-token.ts)'],
  ])
  expect(missingSteps(wrong)).toEqual([
    'engine: Life of a fencing token, step 3 of 8: is granted',
    'guard: Life of a fencing token, step 6 of 8: is checked',
  ])
  expect(stepsNotInReadme(wrong)).toEqual(['packages/engine/src/fencing-token.ts'])
})
