import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { published } from './consumer.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

export interface Example {
  /** Where it stands: `docs/guide/x.md, block 2`. */
  readonly from: string
  readonly code: string
}

/** Every TypeScript block of what users read. */
export function examples(): Example[] {
  const guide = readdirSync(join(ROOT, 'docs/guide')).map((name) => `docs/guide/${name}`)
  const readmes = published.map(({ folder }) => `packages/${folder.split('/').at(-1)}/README.md`)
  return ['README.md', ...guide, ...readmes]
    .filter((path) => path.endsWith('.md') && existsSync(join(ROOT, path)))
    .flatMap((path) => {
      const blocks = [...read(path).matchAll(/^```ts\n([\s\S]*?)^```/gm)]
      return blocks.map(([, code = ''], index) => ({ from: `${path}, block ${index + 1}`, code }))
    })
}

export function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}
