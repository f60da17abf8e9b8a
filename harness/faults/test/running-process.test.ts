import { expect, test } from 'vitest'
import { freePort, isAlive, startProcess } from '../src/index.ts'

const node = (script: string, ...args: string[]): ReturnType<typeof startProcess> =>
  startProcess(process.execPath, { args: ['-e', script, ...args] })

/** Prints a line, then lives until it is killed. */
const FOREVER = "console.log('up', process.pid); setInterval(() => {}, 1e6)"

/** Nothing announces that somebody else's child has ended. */
async function hasEnded(pid: number): Promise<boolean> {
  for (let turn = 0; turn < 100_000 && isAlive(pid); turn += 1) {
    await new Promise(setImmediate)
  }
  return !isAlive(pid)
}

test('waitForLine finds a line that was printed before, and one that comes later', async () => {
  await using child = await node(
    "console.log('first 1'); setImmediate(() => console.log('second 2'))",
  )
  const [, number] = await child.waitForLine(/^second (\d)/)
  expect(number).toBe('2')
  expect((await child.waitForLine(/^first (\d)/))[1]).toBe('1')
  expect(child.lines).toEqual(['first 1', 'second 2'])
})

test('waitForLine says what was printed when the process ends without the line', async () => {
  await using child = await node("console.error('no such file'); process.exitCode = 3")
  await expect(child.waitForLine(/ready/)).rejects.toThrow(/"code":3[^]*no such file/)
  expect(await child.exited).toEqual({ code: 3, signal: null })
})

test('waitForLine gives up at its bound', async () => {
  await using child = await node(FOREVER)
  await expect(child.waitForLine(/never/, 1)).rejects.toThrow('not within 1 ms')
})

test('a command that does not exist is an error', async () => {
  await expect(startProcess('/nowhere/at-all')).rejects.toThrow('ENOENT')
})

test('the environment is added to, and a variable can be removed', async () => {
  const script = 'console.log(`${process.env.A} ${process.env.HOME}`)'
  await using child = await startProcess(process.execPath, {
    args: ['-e', script],
    env: { A: 'x', HOME: undefined },
  })
  await child.waitForLine(/^x undefined$/)
})

test('a paused process goes on where it was', async () => {
  await using child = await node("process.on('SIGUSR2', () => console.log('woke')); " + FOREVER)
  await child.waitForLine(/up/)
  child.pause()
  child.signal('SIGUSR2')
  child.resume()
  await child.waitForLine(/woke/)
})

test('kill ends a paused group with everything in it, and is idempotent', async () => {
  const withChild = `
    const { spawn } = require('node:child_process')
    const { pid } = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'])
    console.log('grandchild', pid)
    process.on('SIGTERM', () => {})`
  await using child = await node(withChild)
  const grandchild = Number((await child.waitForLine(/grandchild (\d+)/))[1])
  child.pause()
  expect(await child.kill()).toEqual({ code: null, signal: 'SIGKILL' })
  expect(await child.kill()).toEqual({ code: null, signal: 'SIGKILL' })
  expect(await hasEnded(grandchild)).toBe(true)
})

test('stop asks first, and kills what does not listen', async () => {
  await using polite = await node("process.on('SIGTERM', () => process.exit(7)); " + FOREVER)
  await polite.waitForLine(/up/)
  expect(await polite.stop()).toEqual({ code: 7, signal: null })

  await using deaf = await node("process.on('SIGTERM', () => {}); " + FOREVER)
  await deaf.waitForLine(/up/)
  expect(await deaf.stop(1)).toEqual({ code: null, signal: 'SIGKILL' })
})

test('what was started ends with its starter, even when that is killed with SIGKILL', async () => {
  const starter = `
    const { startProcess } = await import(${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)})
    const child = await startProcess(process.execPath, { args: ['-e', ${JSON.stringify(FOREVER)}] })
    await child.waitForLine(/up/)
    console.log('started', child.pid)`
  await using outer = await startProcess(process.execPath, {
    args: ['--conditions=@dlock/source', '--import=tsx', '--input-type=module', '-e', starter],
  })
  const inner = Number((await outer.waitForLine(/started (\d+)/))[1])
  expect(isAlive(inner)).toBe(true)
  outer.signal('SIGKILL')
  await outer.exited
  expect(await hasEnded(inner)).toBe(true)
})

test('a free port can be listened on', async () => {
  const port = await freePort()
  await using child = await node(
    `require('node:net').createServer().listen(${port}, '127.0.0.1', () => console.log('listening'))`,
  )
  await child.waitForLine(/listening/)
})
