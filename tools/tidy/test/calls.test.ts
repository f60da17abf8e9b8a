import { expect, test } from 'vitest'
import { type Files, matching, repository, withoutComments } from './repository.ts'

/**
 * What lint has no rule for: the wall clock read by a bare `new Date()`. Every other ban on ambient
 * time, chance and request scopes is in `.oxlintrc.json`.
 */
function wallClockReads(files: Files): string[] {
  return matching(files, /^packages\/(?!system\/)[^/]+\/src\/.*\.ts$/)
    .filter(([, source]) => /\bnew Date\(\s*\)/.test(withoutComments(source)))
    .map(([path]) => path)
}

/**
 * A test that sleeps for a fixed time is slow on every machine and wrong on some. The pause of a
 * fault whose length *is* the situation gives its length a name that says so; a pause of a few
 * milliseconds is that of a poll, for a sign that nothing announces.
 */
const SLEEP =
  /\bsetTimeout\(\s*\w+\s*,\s*([\d_]+)\s*\)|\b(?:sleep|delay|pause|wait|setTimeout)\(\s*([\d_]+)\s*[,)]/
const LONGEST_POLL_PAUSE_MS = 20

function fixedSleeps(files: Files): string[] {
  return matching(files, /^[^/]+\/[^/]+\/test\/.*\.ts$|^packages\/tck\/src\//)
    .filter(([path]) => path !== 'tools/tidy/test/calls.test.ts')
    .flatMap(([path, source]) =>
      withoutComments(source)
        .split('\n')
        .filter((line) => sleptMs(line) > LONGEST_POLL_PAUSE_MS)
        .map((line) => `${path}: ${line.trim()}`),
    )
}

function sleptMs(line: string): number {
  const [, inPromise, direct] = SLEEP.exec(line) ?? []
  return Number((inPromise ?? direct ?? '0').replaceAll('_', ''))
}

test('no package but system reads the wall clock', () => {
  expect(wallClockReads(repository)).toEqual([])
})

test('no test sleeps for a fixed time', () => {
  expect(fixedSleeps(repository)).toEqual([])
})

test('the rules see a bare new Date() and each form of fixed sleep', () => {
  const wrong: Files = new Map([
    ['packages/engine/src/a.ts', '/** new Date() */ const at = new Date( )'],
    ['packages/engine/src/b.ts', '// new Date()\nconst at = new Date(clock.now())'],
    ['packages/system/src/c.ts', 'const at = new Date()'],
    [
      'packages/engine/test/d.test.ts',
      [
        'await new Promise((resolve) => setTimeout(resolve, 500))',
        'await sleep(1_000)',
        'await setTimeout(21)',
        'setTimeout(() => child.kill(), 5_000)',
        'await setTimeout(20)',
        'await untilExpiry(setTimeout, ttlMs)',
      ].join('\n'),
    ],
  ])
  expect(wallClockReads(wrong)).toEqual(['packages/engine/src/a.ts'])
  expect(fixedSleeps(wrong)).toEqual([
    'packages/engine/test/d.test.ts: await new Promise((resolve) => setTimeout(resolve, 500))',
    'packages/engine/test/d.test.ts: await sleep(1_000)',
    'packages/engine/test/d.test.ts: await setTimeout(21)',
  ])
})
