import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { onTestFinished } from 'vitest'
import type { LockClient } from '../src/index.ts'

const packageFolder = join(import.meta.dirname, '..')

/** This package with one passage of its source replaced; fails when the passage is not there once. */
export async function mutant(
  file: string,
  passage: string,
  replacement: string,
): Promise<typeof LockClient> {
  const folder = mkdtempSync(join(tmpdir(), 'dlock-client-mutant-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const filter = (path: string): boolean => !path.endsWith('tsconfig.json')
  cpSync(join(packageFolder, 'src'), join(folder, 'src'), { recursive: true, filter })
  symlinkSync(join(packageFolder, 'node_modules'), join(folder, 'node_modules'))
  const path = join(folder, 'src', file)
  const [before, after, ...more] = readFileSync(path, 'utf8').split(passage)
  if (after === undefined || more.length > 0) {
    throw new Error(`${file} does not hold exactly one: ${passage}`)
  }
  writeFileSync(path, before + replacement + after)
  const index = pathToFileURL(join(folder, 'src', 'index.ts')).href
  const module = (await import(index)) as { LockClient: typeof LockClient }
  return module.LockClient
}
