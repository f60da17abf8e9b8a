import { afterAll, beforeAll, expect, test } from 'vitest'
import { Consumer, published, tool } from './consumer.ts'

let consumer: Consumer

beforeAll(async () => {
  consumer = await Consumer.create()
})

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
  async ([module, moduleResolution, files]) => {
    const compilerOptions = {
      module,
      moduleResolution,
      target: 'es2023',
      lib: ['es2023', 'esnext.disposable'],
      types: ['node'],
      strict: true,
      skipLibCheck: false,
      noEmit: true,
    }
    for (const file of files) await consumer.write(file, everyType + typesAreReal)
    await consumer.write('tsconfig.json', JSON.stringify({ compilerOptions, files }))
    await expectSuccess(tool('typescript/bin/tsc'))
  },
)

test.for(names)('%s: its tarball is in order', async (name) => {
  const attw = tool('@arethetypeswrong/cli/dist/index.js')
  const publint = tool('publint/src/cli.js')
  const tarball = consumer.tarball(name)
  await expectSuccess(attw, tarball, '--profile', 'esm-only')
  await expectSuccess(publint, tarball, '--strict')
})
