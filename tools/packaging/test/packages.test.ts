import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { startProcess } from '@dlock/faults'
import { createTestDatabase } from '@dlock/services'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Consumer, published, tool } from './consumer.ts'
import { examples, read } from './examples.ts'

const LOCKD = fileURLToPath(new URL('../../../apps/lockd/bin/lockd.js', import.meta.url))

let consumer: Consumer

beforeAll(async () => {
  consumer = await Consumer.create()
}, 180_000)

afterAll(() => consumer[Symbol.asyncDispose]())

async function expectSuccess(...script: string[]): Promise<void> {
  const { code, output } = await consumer.node(...script)
  expect(code, output).toBe(0)
}

const names = published.map(({ name }) => name)
/** The conformance kit runs inside a test runner, which is an ES module and nothing else. */
const requirable = names.filter((name) => name !== '@dlock/tck')

test('P-30: every package can be required from CommonJS', async () => {
  const lines = requirable.map((name) => `if (!Object.keys(require('${name}')).length) throw 0`)
  await consumer.write('all.cjs', lines.join('\n'))
  await expectSuccess('all.cjs')
})

test('P-30: every package can be imported from an ES module', async () => {
  const lines = requirable.map((name) => `await import('${name}')`)
  await consumer.write('all.mjs', lines.join('\n'))
  await expectSuccess('all.mjs')
})

const STRICT = {
  module: 'nodenext',
  target: 'es2023',
  lib: ['es2023', 'esnext.disposable'],
  types: ['node'],
  strict: true,
  skipLibCheck: true,
  noEmit: true,
}

const everyType = names
  .map((name, index) => `import * as p${index} from '${name}'\nexport { p${index} }`)
  .join('\n')

/** One use that goes wrong when a type has silently become `any`. */
const typesAreReal = `
import { type LockService } from '@dlock/lock-api'
export async function token(locks: LockService): Promise<bigint> {
  const handle = await locks.tryAcquire('key', 'owner', 1_000)
  // @ts-expect-error: not held is undefined, and has no token
  void handle.fencingToken
  return handle?.fencingToken ?? 0n
}`

test.for([
  ['nodenext', 'nodenext', ['consumer.ts', 'consumer.cts']],
  ['preserve', 'bundler', ['consumer.ts']],
] as const)(
  'P-30: types resolve with TypeScript 5.9, module %s and resolution %s',
  { timeout: 180_000 },
  async ([module, moduleResolution, files]) => {
    const compilerOptions = { ...STRICT, module, moduleResolution, skipLibCheck: false }
    for (const file of files) await consumer.write(file, everyType + typesAreReal)
    await consumer.write('tsconfig.json', JSON.stringify({ compilerOptions, files }))
    await expectSuccess(tool('typescript/bin/tsc'))
  },
)

test('the code in the READMEs and in the guide compiles', async () => {
  const files = new Map(examples().map(({ code }, index) => [`example-${index}.ts`, code]))
  for (const [file, code] of files) await consumer.write(file, `${code}\nexport {}\n`)
  await consumer.write(
    'tsconfig.json',
    JSON.stringify({ compilerOptions: STRICT, files: [...files.keys()] }),
  )
  const { code, output } = await consumer.node(tool('typescript/bin/tsc'))
  const where = (_: string, index: string): string => examples()[Number(index)]?.from ?? ''
  expect(code, output.replaceAll(/example-(\d+)\.ts/g, where)).toBe(0)
})

test("the README's ten lines acquire, renew and release, beside a lockd", async () => {
  const script = read('packages/lock-client/examples/first-lock.mjs')
  expect(read('README.md')).toContain(script)
  await using database = await createTestDatabase()
  await using lockd = await startProcess(process.execPath, {
    args: [LOCKD, '--lock-listen-port', '0'],
    env: { LOCKDB_URL: database.url, npm_lifecycle_event: 'start' },
  })
  const [address = ''] = await lockd.waitForLine(/http:\/\/127\.0\.0\.1:\d+/)
  await consumer.write('first-lock.mjs', script.replace('http://127.0.0.1:7400', address))
  const { code, output } = await consumer.node('first-lock.mjs')
  expect(code, output).toBe(0)
  expect(output).toMatch(/^mine, with token (\d+)\nstill mine, with token \1\n$/)
})

test.for(names)('%s: its tarball is in order', async (name) => {
  const attw = tool('@arethetypeswrong/cli/dist/index.js')
  const publint = tool('publint/src/cli.js')
  const tarball = consumer.tarball(name)
  const files = readdirSync(consumer.installed(name), { recursive: true }).map(String)
  const needed = ['README.md', 'package.json', 'dist/index.js', 'dist/index.d.ts']
  expect(needed.filter((file) => !files.includes(file))).toEqual([])
  expect(files.filter((file) => /(^|\/)\.|^test\b|tsbuildinfo/.test(file))).toEqual([])
  await expectSuccess(attw, tarball, '--profile', 'esm-only')
  await expectSuccess(publint, tarball, '--strict')
})
