import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { chooseFolder } from '../src/index.ts'

let parent: string
let candidates: [string, string]

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'dlock-test-'))
  await chmod(parent, 0o755)
  candidates = [join(parent, 'near', 'postgres'), join(parent, 'far', 'postgres')]
})

afterEach(() => rm(parent, { recursive: true, force: true }))

it('takes the first that can be used', async () => {
  expect(await chooseFolder(candidates)).toBe(candidates[0])
})

it('keeps to the cluster that is there', async () => {
  await mkdir(join(candidates[1], 'cluster'), { recursive: true })
  expect(await chooseFolder(candidates)).toBe(candidates[1])
})

it('refuses to choose between two clusters', async () => {
  for (const folder of candidates) await mkdir(join(folder, 'cluster'), { recursive: true })
  await expect(chooseFolder(candidates)).rejects.toThrow('hold a cluster each')
})

it.runIf(process.getuid?.() === 0)(
  'passes over what the user of postgres cannot enter',
  async () => {
    await mkdir(join(parent, 'near'), { mode: 0o700 })
    expect(await chooseFolder(candidates)).toBe(candidates[1])
    await mkdir(join(parent, 'far'), { mode: 0o700 })
    await expect(chooseFolder(candidates)).rejects.toThrow('can enter none of')
  },
)
