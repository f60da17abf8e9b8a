import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const OLDEST_NODE = [20, 19]

/** Checks Node, installs what the lock file says, builds. Ends the process when it cannot. */
export function makeReady() {
  process.chdir(ROOT)
  checkNode(process.versions.node)
  if (!isInstalled()) install()
  build()
}

function checkNode(version) {
  const [major, minor] = version.split('.').map(Number)
  const [oldestMajor, oldestMinor] = OLDEST_NODE
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return
  fail(`dlock needs Node ${OLDEST_NODE.join('.')} or newer; this is Node ${version}.`)
}

/**
 * npm writes `node_modules/.package-lock.json` at the end of every install, so an install that is
 * missing, was interrupted or is older than the lock file shows in its date.
 */
function isInstalled() {
  const installed = changedAt(join(ROOT, 'node_modules/.package-lock.json'))
  return installed !== undefined && installed >= changedAt(join(ROOT, 'package-lock.json'))
}

function changedAt(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs
}

function install() {
  console.error('Installing packages (npm ci); this happens once.')
  const npm = process.env.npm_execpath
  const args = ['ci', '--no-audit', '--no-fund']
  // npm may be a batch file on PATH; its own script, when npm started us, runs everywhere.
  if (npm?.endsWith('.js')) run('npm ci', process.execPath, [npm, ...args])
  else run('npm ci', 'npm', args, process.platform === 'win32')
}

/** By path: `node_modules/.bin` is not there on every file system. */
function build() {
  if (changedAt(join(ROOT, 'apps/lockd/dist')) === undefined) {
    console.error('Building; the first time takes a minute.')
  }
  run('The build', process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-b'])
}

/** Output goes to stderr: stdout belongs to the script that runs next. */
function run(what, command, args, shell = false) {
  const { status, signal, error } = spawnSync(command, args, {
    cwd: ROOT,
    stdio: ['ignore', 2, 2],
    shell,
  })
  if (error !== undefined) fail(`${what} could not be started: ${error.message}`)
  if (signal !== null) fail(`${what} was ended by ${signal}.`)
  if (status !== 0) fail(`${what} failed; the messages above say why.`)
}

function fail(message) {
  console.error(message)
  process.exit(1)
}
