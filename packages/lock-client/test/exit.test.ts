import { spawn } from 'node:child_process'
import { expect, test, vi } from 'vitest'
import { roads, startService } from './roads.ts'

vi.setConfig({ testTimeout: 60_000 })

/** Runs a script that has this package, and tells how it ended. */
function run(script: string): Promise<{ code: number | null; output: string }> {
  const args = ['--conditions', '@dlock/source', '--import', 'tsx', '--input-type=module', '-e']
  const child = spawn(process.execPath, [...args, script], { cwd: import.meta.dirname })
  let output = ''
  child.stdout.on('data', (data) => (output += data))
  child.stderr.on('data', (data) => (output += data))
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })))
}

const inProcess = `
import { LockEngine } from '@dlock/engine'
import { MemoryStore } from '@dlock/store-memory'
const where = { service: new LockEngine({ store: new MemoryStore() }) }
`

test.each(roads)('P-20: a script that closed its client exits by itself, over %s', async (road) => {
  const { url } = await startService()
  const where = `const where = { url: ${JSON.stringify(url)}, transport: ${JSON.stringify(road)} }`
  const { code, output } = await run(`
    import { LockClient } from '../src/index.ts'
    ${road === 'in-process' ? inProcess : where}
    const client = new LockClient(where)
    const session = await client.openSession('script')
    await session.using('k', {}, (lock) => console.log('held', lock.fencingToken))
    await client.close()
    console.log(process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length)
  `)
  expect({ code, output }).toEqual({ code: 0, output: 'held 1n\n0\n' })
})

test.each(roads)('an idle client keeps no process alive, over %s', async (road) => {
  const { url } = await startService()
  const where = `const where = { url: ${JSON.stringify(url)}, transport: ${JSON.stringify(road)} }`
  const { code, output } = await run(`
    import { LockClient } from '../src/index.ts'
    ${road === 'in-process' ? inProcess : where}
    const client = new LockClient(where)
    const session = await client.openSession('script')
    const lock = await session.acquire('k')
    console.log('held', lock.fencingToken)
  `)
  expect({ code, output }).toEqual({ code: 0, output: 'held 1n\n' })
})

test('P-04: the server goes away and nobody listens: the process lives, and is told', async () => {
  const service = await startService()
  const running = run(`
    import { LockClient } from '../src/index.ts'
    process.on('unhandledRejection', (error) => console.log('unhandled', error))
    const client = new LockClient({ url: ${JSON.stringify(service.url)}, sessionTtlMs: 1_000 })
    const session = await client.openSession('script')
    try {
      await session.using('k', {}, async (lock, lost) => {
        const busy = setInterval(() => {}, 1_000)
        await new Promise((resolve) => lost.addEventListener('abort', resolve))
        clearInterval(busy)
        return 'done'
      })
    } catch (error) {
      console.log(error.name)
    }
    await client.close()
    console.log('alive')
  `)
  const held = async () => (await service.engine.inspect('k')) !== undefined
  while (!(await held())) await new Promise((resolve) => setImmediate(resolve))
  await service.close({ withinMs: 0 })
  expect(await running).toEqual({ code: 0, output: 'LockLostError\nalive\n' })
})
