/**
 * `npm run seen-red`: a check that has never failed proves nothing (NFR-07). Each mutation breaks one
 * thing in a copy of the checkout; the tests that should notice must go red, and must be green
 * without it. Ends non-zero when a mutation survives, or does not fit the code any more.
 *
 * `--write` records what went red in docs/findings/seen-red.md.
 *
 * @packageDocumentation
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Mutation, mutations } from './mutations.ts'
import { Scratch } from './scratch.ts'

const RECORD = 'docs/findings/seen-red.md'

interface Report {
  readonly numPassedTests: number
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[]
  }[]
}

interface Outcome {
  readonly passed: number
  readonly red: readonly string[]
}

using scratch = new Scratch()

const green = runTests([...new Set(mutations.map(({ tests }) => tests))])
if (green.red.length > 0 || green.passed === 0) {
  fail(`red without any mutation, so that nothing can be seen:\n  ${green.red.join('\n  ')}`)
}

const seen = mutations.map((mutation) => {
  const mend = scratch.apply(mutation)
  const { red } = runTests([mutation.tests])
  mend()
  console.log(`${red.length > 0 ? 'seen red' : 'SURVIVED'}: ${mutation.broken}`)
  return { mutation, red }
})

const survivors = seen.filter(({ red }) => red.length === 0).length
console.log(`\n${seen.length - survivors} of ${seen.length} seen red`)
if (process.argv.includes('--write')) writeFileSync(RECORD, record(seen))
if (survivors > 0) fail('a mutation survived: the rule that it breaks has no check')

function runTests(files: readonly string[]): Outcome {
  const output = join(scratch.folder, 'report.json')
  const { stderr } = spawnSync(
    process.execPath,
    [
      'node_modules/vitest/vitest.mjs',
      'run',
      ...files,
      '--reporter=json',
      `--outputFile=${output}`,
    ],
    { cwd: scratch.folder, encoding: 'utf8', env: { ...process.env, CI: 'true' } },
  )
  try {
    const { numPassedTests, testResults } = JSON.parse(readFileSync(output, 'utf8')) as Report
    const results = testResults.flatMap(({ assertionResults }) => assertionResults)
    const red = results.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName)
    return { passed: numPassedTests, red }
  } catch {
    return fail(`the tests did not run:\n${stderr}`)
  }
}

function record(rows: readonly { mutation: Mutation; red: readonly string[] }[]): string {
  const row = ({ mutation, red }: (typeof rows)[number]): string => {
    const first = red[0]?.replaceAll('|', '\\|') ?? '**nothing**'
    const more = red.length > 1 ? ` (and ${red.length - 1} more)` : ''
    return `| ${mutation.broken} | ${mutation.rule} | \`${mutation.file}\` | ${first}${more} |`
  }
  return `# Seen red

A check that has never failed proves nothing (NFR-07). \`npm run seen-red\` breaks one thing at a time in a copy of the
checkout, and demands that a test goes red; \`-- --write\` writes this page. The mutations are in
[mutations.ts](../../tools/seen-red/src/mutations.ts).

| What was broken | Rule | Where | Which test went red |
|---|---|---|---|
${rows.map(row).join('\n')}
`
}

function fail(message: string): never {
  console.error(message)
  process.exit(1)
}
