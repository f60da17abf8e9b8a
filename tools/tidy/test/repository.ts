import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Text files by their path from the root, with `/` between folders. What every rule judges. */
export type Files = ReadonlyMap<string, string>

export const ROOT: string = fileURLToPath(new URL('../../../', import.meta.url))

const NOT_OURS = new Set(['.git', '.dlock', 'node_modules', 'dist', 'package-lock.json'])

/** The checkout as it is on disk; uncommitted files too, so that a rule speaks before a commit. */
export const repository: Files = read(ROOT)

function read(root: string): Files {
  const files = new Map<string, string>()
  const visit = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (NOT_OURS.has(entry.name)) continue
      const path = join(folder, entry.name)
      if (entry.isDirectory()) visit(path)
      else if (entry.isFile()) {
        const text = readFileSync(path, 'utf8')
        if (!text.includes('\0')) files.set(relative(root, path).split(sep).join('/'), text)
      }
    }
  }
  visit(root)
  return files
}

/** The files whose path matches, as [path, text]. */
export function matching(files: Files, path: RegExp): [string, string][] {
  return [...files].filter(([name]) => path.test(name))
}

/** One workspace package. */
export interface Member {
  /** `packages/lock-api`, … */
  readonly folder: string
  /** The last part of the folder, which is also the package's name behind `@dlock/`. */
  readonly name: string
  readonly manifest: Manifest
}

export interface Manifest {
  readonly name?: string
  readonly license?: string
  readonly private?: boolean
  readonly description?: string
  readonly dependencies?: Record<string, string>
  readonly optionalDependencies?: Record<string, string>
  readonly peerDependencies?: Record<string, string>
  readonly devDependencies?: Record<string, string>
}

export function membersOf(files: Files): Member[] {
  return matching(files, /^[^/]+\/[^/]+\/package\.json$/).map(([path, text]) => {
    const folder = path.slice(0, -'/package.json'.length)
    return {
      folder,
      name: folder.slice(folder.indexOf('/') + 1),
      manifest: JSON.parse(text) as Manifest,
    }
  })
}

/** TypeScript without its comments; what is inside strings stays. */
export function withoutComments(source: string): string {
  const stringOrComment =
    /('(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`)|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g
  return source.replace(stringOrComment, (_, kept: string | undefined) => kept ?? '')
}

/** Every module that a TypeScript source names: imported, re-exported, or loaded at run time. */
export function importsOf(source: string): string[] {
  const specifier = /\b(?:from|import)\s*\(?\s*(['"])([^'"\n]+)\1/g
  return [...withoutComments(source).matchAll(specifier)].map((match) => match[2] ?? '')
}
