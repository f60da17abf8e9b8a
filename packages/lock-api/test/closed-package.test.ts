import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

/** NFR-16: the contract knows no runtime, no driver and no framework. */
const packageFolder = fileURLToPath(new URL('..', import.meta.url))
const sourceFolder = join(packageFolder, 'src')
const sources = readdirSync(sourceFolder)
  .filter((name) => name.endsWith('.ts'))
  .map((name) => ({ name, text: readFileSync(join(sourceFolder, name), 'utf8') }))
  .map(({ name, text }) => ({ name, text, code: withoutComments(text) }))

function json(path: string): Record<string, unknown> {
  return JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
}

describe('NFR-16: the package depends on nothing', () => {
  test('its manifest declares no dependency of any kind that reaches a user', () => {
    const manifest = json(join(packageFolder, 'package.json'))
    for (const kind of [
      'dependencies',
      'peerDependencies',
      'optionalDependencies',
      'bundledDependencies',
    ]) {
      expect(manifest).not.toHaveProperty(kind)
    }
  })

  test('it is compiled against plain ECMAScript: no DOM, no types of a runtime', () => {
    const { compilerOptions, extends: base } = json(join(sourceFolder, 'tsconfig.json')) as {
      compilerOptions: { types?: unknown; lib?: unknown }
      extends: string
    }
    const inherited = json(join(sourceFolder, base))['compilerOptions'] as { lib: unknown }
    expect(compilerOptions.types).toEqual([])
    expect(compilerOptions.lib ?? inherited.lib).toEqual(['es2023', 'esnext.disposable'])
  })

  test.each(sources)('$name imports nothing from outside the package', ({ code }) => {
    const specifiers = [
      ...code.matchAll(/^(?:import\s*|(?:import|export)\b[^'"]*?\bfrom\s*)['"]([^'"]+)['"]/gm),
    ]
    expect(specifiers.map(([, name]) => name ?? '').filter((name) => !ownFile(name))).toEqual([])
    expect(code).not.toMatch(/\b(?:import|require)\s*\(/)
  })

  test.each(sources)('$name refers to no types by other ways', ({ text }) => {
    expect(text).not.toMatch(/\/\/\/\s*<reference|@ts-ignore|@ts-expect-error|\bdeclare\s+global\b/)
  })
})

describe('contract 2.7: a token is an argument', () => {
  test.each(sources)('$name has nothing that would carry one unseen', ({ code }) => {
    expect(code).not.toMatch(/AsyncLocalStorage|AsyncResource|ThreadLocal|globalThis/)
  })
})

test('the package logs nothing', () => {
  for (const { code } of sources) expect(code).not.toMatch(/\bconsole\b|process\.std/)
})

test.each(sources.filter(({ name }) => name !== 'index.ts'))(
  'T-004: every export of $name says what it is',
  ({ text }) => {
    const lines = text.split('\n')
    const bare = lines.filter(
      (line, index) => line.startsWith('export ') && !lines[index - 1]?.endsWith('*/'),
    )
    expect(bare).toEqual([])
  },
)

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
}

function ownFile(specifier: string): boolean {
  return sources.some(({ name }) => specifier === `./${name}`)
}
