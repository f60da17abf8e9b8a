import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Mutation } from './mutations.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

/** A copy of the checkout that may be broken, so that an interrupted run harms nothing. */
export class Scratch implements Disposable {
  readonly folder: string

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'dlock-seen-red-'))
    cpSync(ROOT, this.folder, { recursive: true, verbatimSymlinks: true, filter: isCopied })
    symlinkSync(join(ROOT, 'node_modules'), join(this.folder, 'node_modules'))
  }

  /** Breaks one thing. @returns how to mend it */
  apply({ file, passage, replacement }: Mutation): () => void {
    const path = join(this.folder, file)
    const original = readFileSync(path, 'utf8')
    const parts = original.split(passage)
    if (parts.length !== 2) {
      throw new Error(`${file} has ${parts.length - 1} passages like this, not one: ${passage}`)
    }
    writeFileSync(path, parts.join(replacement))
    return () => writeFileSync(path, original)
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

const NOT_COPIED = new Set(['node_modules', '.git', '.dlock'])

/** Of the root's; a package's own node_modules are links into them, which are copied as links. */
function isCopied(source: string): boolean {
  return !NOT_COPIED.has(relative(ROOT, source))
}
