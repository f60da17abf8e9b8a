import { cpSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type RunningProcess, startProcess } from '@dlock/faults'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

const SETUP = fileURLToPath(new URL('../', import.meta.url))

/** A checkout with these scripts, whose npm and compiler only say that they ran. */
let checkout: string

beforeEach(() => {
  checkout = mkdtempSync(join(tmpdir(), 'dlock-setup-'))
  for (const name of ['run.mjs', 'ready.mjs', 'parent.mjs', 'tally.mjs']) {
    mkdirSync(join(checkout, 'tools/setup'), { recursive: true })
    cpSync(join(SETUP, name), join(checkout, 'tools/setup', name))
  }
  write('package-lock.json', '{}')
  write('npm.js', NPM)
  write(
    'app.mjs',
    'console.log("app", process.pid, ...process.argv.slice(2)); process.exitCode = 7',
  )
})

afterEach(() => rmSync(checkout, { recursive: true }))

const TSC =
  'require("node:fs").mkdirSync("apps/lockd/dist", { recursive: true }); console.log("built")'
const NPM = `
  const { mkdirSync, writeFileSync } = require('node:fs')
  mkdirSync('node_modules/typescript/bin', { recursive: true })
  writeFileSync('node_modules/typescript/bin/tsc', ${JSON.stringify(TSC)})
  writeFileSync('node_modules/.package-lock.json', '{}')
  console.log('npm', process.argv[2])`

function write(path: string, text: string): string {
  const whole = join(checkout, path)
  mkdirSync(dirname(whole), { recursive: true })
  writeFileSync(whole, text)
  return whole
}

function run(
  args: readonly string[],
  env: Record<string, string | undefined> = {},
): Promise<RunningProcess> {
  const npm = { npm_execpath: join(checkout, 'npm.js'), npm_lifecycle_event: undefined }
  return startProcess(process.execPath, { args, cwd: checkout, env: { ...npm, ...env } })
}

async function linesOf(child: RunningProcess, last: RegExp): Promise<readonly string[]> {
  await child.waitForLine(last)
  return child.lines
}

describe('run.mjs', () => {
  const APP = ['tools/setup/run.mjs', 'app.mjs', '--flag', 'a b']

  test('installs, builds, and becomes the script: its arguments, its exit code', async () => {
    await using child = await run(APP)
    expect(await linesOf(child, /^app/)).toEqual([
      'Installing packages (npm ci); this happens once.',
      'npm ci',
      'Building; the first time takes a minute.',
      'built',
      `app ${child.pid} --flag a b`,
    ])
    expect(await child.exited).toEqual({ code: 7, signal: null })
  })

  test('installs again only when the lock file is newer', async () => {
    await using first = await run(APP)
    await first.exited
    await using second = await run(APP)
    expect(await linesOf(second, /^app/)).toEqual(['built', `app ${second.pid} --flag a b`])
    const later = new Date('2100-01-01T00:00:00Z')
    utimesSync(join(checkout, 'package-lock.json'), later, later)
    await using third = await run(APP)
    expect(await linesOf(third, /^app/)).toContain('npm ci')
  })

  test('a failed build is the end, with its own words', async () => {
    write(
      'npm.js',
      NPM.replace('console.log(\\"built\\")', 'console.log(\\"no\\"); process.exit(2)'),
    )
    await using child = await run(APP)
    const lines = await linesOf(child, /^The build failed; the messages above say why\.$/)
    expect(lines).toContain('no')
    expect(lines).not.toContainEqual(expect.stringMatching(/^app/))
    expect(await child.exited).toEqual({ code: 1, signal: null })
  })

  test('an old Node is told what is needed', async () => {
    const pretend =
      "data:text/javascript,Object.defineProperty(process,'versions',{value:{node:'20.18.3'}})"
    await using child = await run(['--import', pretend, ...APP])
    await child.waitForLine(/^dlock needs Node 20\.19 or newer; this is Node 20\.18\.3\.$/)
    expect(await child.exited).toEqual({ code: 1, signal: null })
  })

  test.for([
    ['a shell that waits', '; exit $?'],
    ['a shell that is replaced', ''],
  ])('what npm started through %s is asked to stop when npm is killed', async ([, after]) => {
    const app = write(
      'app.mjs',
      "process.on('SIGTERM', () => { console.log('stopped'); process.exit() })\n" +
        "console.log('up'); setInterval(() => {}, 1e6)",
    )
    const command = `${after === '' ? 'exec ' : ''}"$0" tools/setup/run.mjs ${app}${after}`
    const shell = JSON.stringify(['-c', command, process.execPath])
    const npmRun = write(
      'npm-run.cjs',
      `require('node:child_process').spawn('sh', ${shell}, { stdio: 'inherit' })`,
    )
    await using npm = await run([npmRun], { npm_lifecycle_event: 'start' })
    await npm.waitForLine(/^up$/)
    npm.signal('SIGKILL')
    await npm.waitForLine(/^stopped$/)
  })
})

describe('tally.mjs', () => {
  const passed = { status: 'passed', assertionResults: [{ status: 'passed' }] }
  const failed = { status: 'failed', assertionResults: [{ status: 'failed' }] }
  const notLoaded = { status: 'failed', assertionResults: [] }
  const report = (numPassedTests: number, numFailedTests: number, testResults: unknown[]): string =>
    JSON.stringify({ numPassedTests, numFailedTests, testResults })

  test.for([
    ['all passed', report(3, 0, [passed]), '0', '3 0'],
    ['one failed', report(3, 1, [passed, failed]), '1', '3 1'],
    ['a file did not load', report(3, 0, [passed, notLoaded]), '1', '3 1'],
    ['an error outside every test', report(3, 0, [passed]), '1', '3 1'],
    ['no test ran', report(0, 0, []), '0', '0 1'],
    ['no report', undefined, '1', '0 1'],
  ] as const)('%s', async ([, text, status, expected]) => {
    if (text !== undefined) write('report.json', text)
    await using tally = await run(['tools/setup/tally.mjs', 'report.json', status])
    await tally.waitForLine(new RegExp(`^${expected}$`))
  })
})
