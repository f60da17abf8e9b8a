import { fileURLToPath } from 'node:url'
import { startProcess } from '@dlock/faults'
import { expect, test } from 'vitest'
import { findPgbench } from '../src/pgbench.ts'

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url))

const pgbench = await findPgbench().catch(() => undefined)

test.skipIf(pgbench === undefined)(
  'the benchmark runs from end to end, and nothing in it violates exclusion',
  { timeout: 180_000 },
  async () => {
    await using bench = await startProcess(process.execPath, {
      args: [MAIN, '--seconds', '0.1', '--rounds', '1'],
    })
    await bench.waitForLine(/^\d+ of 11 met\.$/, 170_000)
    expect(await bench.exited).toEqual({ code: 0, signal: null })
  },
)

test('the benchmark of the etcd store runs from end to end', { timeout: 180_000 }, async () => {
  await using bench = await startProcess(process.execPath, {
    args: [MAIN, '--etcd', '--seconds', '0.1'],
  })
  await bench.waitForLine(/^## 3 members$/, 170_000)
  expect(await bench.exited).toEqual({ code: 0, signal: null })
})

test.for([
  ['--seconds', '0'],
  ['--rounds', 'many'],
])('%s %s is refused with its range', async ([option = '', value = '']) => {
  await using bench = await startProcess(process.execPath, { args: [MAIN, option, value] })
  await bench.waitForLine(/must be a number above 0 and at most 3600/)
  expect(await bench.exited).toEqual({ code: 2, signal: null })
})
