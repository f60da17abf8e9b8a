import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url))

async function sim(...args: string[]): Promise<{ readonly code: number; readonly out: string }> {
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args])
    return { code: 0, out: stdout }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { code, out: stdout + stderr }
  }
}

test('two processes print the same trace of one seed, whose first line is the seed', async () => {
  const [first, second] = await Promise.all([
    sim('--seed', '3', '--trace'),
    sim('--seed', '3', '--trace'),
  ])
  expect(first.out).toMatch(/^seed 3\n/)
  expect(first.out).toMatch(/\d+ steps, trace [0-9a-f]{64}\n/)
  expect(second).toEqual(first)
  expect(first.code).toBe(0)
})

test('a sweep that fails names the seed and the rule, and exits with 1', async () => {
  const { code, out } = await sim('--seeds', '1..2', '--broken', 'a take-over mints no token')
  expect(out).toMatch(/^seeds 1\.\.2\n/)
  expect(out).toMatch(/^seed 2 violates INV-04 at /m)
  expect(out).toMatch(/^\d of 2 runs failed/m)
  expect(code).toBe(1)
})

test.for([
  ['--seed', '-1'],
  ['--seed', '4294967296'],
  ['--seeds', '5'],
  ['--broken', 'nothing'],
])('%s %s is refused', async ([option = '', value = '']) => {
  const { code, out } = await sim(`${option}=${value}`)
  expect(code).toBe(2)
  expect(out).toContain(`${option} cannot be`)
})
