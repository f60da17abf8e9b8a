import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rename, rm, symlink } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { exists, makeFolder } from './folders.ts'

const run = promisify(execFile)

/**
 * npm packages hold no symbolic links, so the libraries' links are in a list, made by the package's
 * install script. npm may have been told to run no install scripts; then they are made here.
 * Harmless when they exist, and when the folder may not be written to.
 */
export async function hydrateLinks(native: string): Promise<void> {
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  const links: { source: string; target: string }[] = JSON.parse(list)
  for (const { source, target } of links) {
    await symlink(basename(source), join(native, '..', target)).catch(() => undefined)
  }
}

/**
 * A copy of the binaries that every user can run, made once: for a root owner whose checkout is
 * in a folder that only root may enter, and for an installation without links that is read-only.
 * Safe when two start at once: the copy appears under its name whole or not at all.
 *
 * @returns the copy's `native` folder
 */
export async function copyForEverybody(native: string, parent: string): Promise<string> {
  const about = JSON.parse(await readFile(join(native, '..', 'package.json'), 'utf8'))
  const copy = join(parent, `${basename(about.name)}-${about.version}`)
  if (await exists(copy)) return copy
  await makeFolder(parent)
  const unfinished = await mkdtemp(`${copy}.`)
  await cp(native, unfinished, { recursive: true, verbatimSymlinks: true })
  await hydrateLinks(unfinished)
  await run('chmod', ['-R', 'a+rX', unfinished])
  try {
    await rename(unfinished, copy)
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true })
    if (!(await exists(copy))) throw error
  }
  return copy
}

/** Never a folder that others may write to: root would run what they had put there. */
export function copiesFolder(): string {
  const root = process.getuid?.() === 0
  return join(root ? '/var/lib/dlock' : join(homedir(), '.cache', 'dlock'), 'postgres-binaries')
}
