import { expect, test } from 'vitest'
import { type Files, matching, repository } from './repository.ts'

/** The ways lock libraries fail that this project knows of (docs/pitfalls.md), P-01 … P-30. */
const ALL = Array.from({ length: 30 }, (_, index) => `P-${String(index + 1).padStart(2, '0')}`)

/** Every number that the name of a test begins with: `'P-05, P-06: …'` proves both. */
function provenBy(files: Files): Set<string> {
  const names = matching(files, /^[^/]+\/[^/]+\/test\/.*\.ts$|^packages\/tck\/src\//)
    .filter(([path]) => path !== 'tools/tidy/test/pitfalls.test.ts')
    .flatMap(([, source]) => [...source.matchAll(/['"`]((?:P-\d\d(?:, | and )?)+): /g)])
  return new Set(names.flatMap(([, numbers = '']) => numbers.match(/P-\d\d/g) ?? []))
}

test('every pitfall is the name of a test', () => {
  const proven = provenBy(repository)
  expect(ALL.filter((row) => !proven.has(row))).toEqual([])
})

test('the rule counts what begins a name, and nothing else', () => {
  const files: Files = new Map([
    ['packages/x/test/a.test.ts', "test('P-01, P-02 and P-03: a', f); test('as P-04: b', g)"],
    ['packages/tck/src/b.ts', 'it(`P-05: ${name}`, f) // P-06: later'],
    ['packages/x/src/c.ts', "throw new Error('P-07: c')"],
  ])
  expect([...provenBy(files)]).toEqual(['P-01', 'P-02', 'P-03', 'P-05'])
})
