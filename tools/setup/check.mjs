/**
 * `npm run check`: everything about the code that is not a test, one line each, and at the end a
 * line `N passed, N failed`. The only list of these checks. Tools are called by path, because
 * `node_modules/.bin` is not there on every file system.
 */
import { spawnSync } from 'node:child_process'
import process from 'node:process'
import { makeReady } from './ready.mjs'

const CHECKS = [
  ['types', 'node_modules/typescript/bin/tsc', '-b'],
  ['lint', 'node_modules/oxlint/bin/oxlint', '--deny-warnings'],
  ['format', 'node_modules/@biomejs/biome/bin/biome', 'ci', '.'],
  ['dead code', 'tools/packaging/node_modules/knip/bin/knip.js', '--no-config-hints'],
]

// oxlint looks for its type-aware half in node_modules/.bin only, unless told.
process.env.OXLINT_TSGOLINT_PATH = 'node_modules/oxlint-tsgolint/bin/tsgolint.js'

makeReady()

const failed = CHECKS.filter(([name, tool, ...args]) => {
  console.log(`\n== ${name}`)
  const { status } = spawnSync(process.execPath, [tool, ...args], { stdio: ['ignore', 1, 2] })
  console.log(status === 0 ? `${name}: ok` : `${name}: FAILED`)
  return status !== 0
}).length

console.log(`\n${CHECKS.length - failed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
