import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Files, ROOT, repository } from './repository.ts'

/** What belongs to one machine or one person, by how it looks. */
const LEAKS: readonly (readonly [string, RegExp])[] = [
  ['a path of one machine', /(?<![\w.$}*-])\/(?:work|root|home\/\w+|Users\/\w+|tmp)\/[\w.-]+/],
  ['a private key', /-----BEGIN [A-Z ]*PRIVATE KEY-----/],
  ['a cloud key', /\bAKIA[0-9A-Z]{16}\b/],
  ['an access token', /\b(?:gh[pousr]_\w{30,}|npm_\w{30,}|xox[bp]-\w{10,})/],
  [
    'a password in a URL',
    /\b\w+:\/\/[^\s:/@'"`$]+:(?!secret\b|password\b|hunter2\b|…|\$)[^\s:/@'"`]+@/,
  ],
]

function leaks(files: Files): string[] {
  return [...files]
    .filter(([path]) => path !== 'tools/tidy/test/leaks.test.ts')
    .flatMap(([path, text]) =>
      text
        .split('\n')
        .flatMap((line, index) =>
          LEAKS.filter(([, pattern]) => pattern.test(line)).map(
            ([what]) => `${path}:${index + 1}: ${what}`,
          ),
        ),
    )
}

/** An address in the lock file would make everybody install from somebody's mirror. */
function registriesIn(lockFile: string): string[] {
  return [...new Set(lockFile.match(/https?:\/\/[^/"]+\/[^"]*\.tgz/g) ?? [])].filter(
    (address) => !address.startsWith('https://registry.npmjs.org/'),
  )
}

test('nothing of one machine or one person is in the repository', () => {
  expect(leaks(repository)).toEqual([])
})

test('the lock file names no registry but the public one', () => {
  expect(registriesIn(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))).toEqual([])
})

test('the rules see each kind of leak', () => {
  const wrong: Files = new Map([
    ['a.md', 'see /home/ann/x\n-----BEGIN RSA PRIVATE KEY-----\nhttps://example.com/work/x'],
    ['b.ts', "connect('postgres://app:pa55word@db/lock')\n`postgres://${user}:${word}@db`"],
    ['c.ts', `'AKIA${'A'.repeat(16)}' 'ghp_${'a'.repeat(36)}'`],
  ])
  expect(leaks(wrong)).toEqual([
    'a.md:1: a path of one machine',
    'a.md:2: a private key',
    'b.ts:1: a password in a URL',
    'c.ts:1: a cloud key',
    'c.ts:1: an access token',
  ])
  expect(registriesIn('"resolved": "https://npm.example.com/x/-/x-1.tgz"')).toHaveLength(1)
})
