import { posix } from 'node:path'
import { expect, test } from 'vitest'
import { type Files, matching, membersOf, repository } from './repository.ts'

/** A file or folder that a Markdown link names, relative to the file it stands in. */
function brokenLinks(files: Files): string[] {
  const folders = new Set([...files.keys()].flatMap(foldersOf))
  return matching(files, /\.md$/).flatMap(([path, text]) =>
    linksOf(text)
      .filter((link) => !/^(https?|mailto):/.test(link))
      .filter((link) => {
        const [file = '', anchor] = link.split('#')
        const target = file === '' ? path : posix.join(posix.dirname(path), file)
        if (folders.has(target.replace(/\/$/, ''))) return false
        const linked = files.get(target)
        if (linked === undefined) return true
        return anchor !== undefined && target.endsWith('.md') && !anchorsOf(linked).has(anchor)
      })
      .map((link) => `${path}: ${link}`),
  )
}

function linksOf(markdown: string): string[] {
  const text = markdown.replaceAll(/```[\s\S]*?```|`[^`\n]*`/g, '')
  const inline = [...text.matchAll(/\]\(([^)\s]+)\)/g)]
  const attributes = [...text.matchAll(/\b(?:src|srcset|href)="([^"]+)"/g)]
  return [...inline, ...attributes].map((match) => match[1] ?? '')
}

/** GitHub's: lower case, punctuation dropped, spaces to hyphens. */
function anchorsOf(markdown: string): Set<string> {
  const headings = markdown.matchAll(/^#+ (.+)$/gm)
  return new Set(
    [...headings].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}

function foldersOf(path: string): string[] {
  const parts = path.split('/').slice(0, -1)
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'))
}

/** Everything a package must say about itself. */
function undocumentedMembers(files: Files): string[] {
  return membersOf(files).flatMap(({ folder, manifest }) => {
    const readme = files.get(`${folder}/README.md`) ?? ''
    const index = files.get(`${folder}/src/index.ts`)
    return [
      /^# .+\n\n./.test(readme) ? undefined : 'README.md',
      index === undefined || /^\/\*\*[\s\S]*?@packageDocumentation\s*\*\//.test(index)
        ? undefined
        : 'doc comment of src/index.ts',
      manifest.description ? undefined : 'description',
      manifest.license === 'Apache-2.0' ? undefined : 'license',
    ]
      .filter((missing) => missing !== undefined)
      .map((missing) => `${folder}: ${missing}`)
  })
}

/** Who reads ARCHITECTURE.md meets every package, tools excepted. */
function missingInArchitecture(files: Files): string[] {
  const text = files.get('ARCHITECTURE.md') ?? ''
  return membersOf(files)
    .map(({ folder }) => folder)
    .filter((folder) => !folder.startsWith('tools/') && !text.includes(`](${folder})`))
}

const ROOT_DOCUMENTS = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'LICENSE',
]

test('links in Markdown lead somewhere', () => {
  expect(brokenLinks(repository)).toEqual([])
})

test('every package says what it is', () => {
  expect(undocumentedMembers(repository)).toEqual([])
})

test('ARCHITECTURE.md has every package', () => {
  expect(missingInArchitecture(repository)).toEqual([])
})

test('the root has its documents', () => {
  expect(ROOT_DOCUMENTS.filter((name) => !repository.has(name))).toEqual([])
})

test('the rules see a broken link, a broken anchor, a package that says nothing', () => {
  const wrong: Files = new Map([
    ['docs/a.md', '# A b!\n[ok](#a-b) [ok](b.md#c) [no](#c) [no](no.md) `[code](x.md)`'],
    ['docs/b.md', '# C\n[up](../docs/) [no](../src) <img src="no.svg">'],
    ['packages/x/package.json', '{}'],
    ['packages/x/src/index.ts', 'export {}'],
  ])
  expect(brokenLinks(wrong)).toEqual([
    'docs/a.md: #c',
    'docs/a.md: no.md',
    'docs/b.md: ../src',
    'docs/b.md: no.svg',
  ])
  expect(missingInArchitecture(wrong)).toEqual(['packages/x'])
  expect(undocumentedMembers(wrong)).toEqual([
    'packages/x: README.md',
    'packages/x: doc comment of src/index.ts',
    'packages/x: description',
    'packages/x: license',
  ])
})
