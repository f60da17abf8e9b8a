import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { TcpProxy } from '@dlock/faults'
import { describe, expect, test } from 'vitest'
import { aliveOf, dlock, familyOf, startDlock, stubborn, temporaryFolder } from './processes.ts'
import { type Served, serve } from './serve.ts'

/** Holds `key` for somebody else. */
async function occupy({ engine }: Served, key: string): Promise<() => Promise<unknown>> {
  const sessionId = await engine.openSession('other', 60_000)
  const lock = await engine.forSession(sessionId).tryAcquire(key, 'other', 60_000)
  if (lock === undefined) throw new Error(`${key} is held already`)
  return () => engine.closeSession(sessionId)
}

describe('a command that runs', () => {
  test.each([0, 1, 7, 121, 255])('its exit status %i is passed through', async (status) => {
    const { url } = await serve()
    const run = await startDlock([
      'run',
      '--url',
      url,
      '--key',
      'k',
      '--',
      'sh',
      '-c',
      `exit ${status}`,
    ])
    expect(await run.exited).toEqual({ code: status, signal: null })
  })

  test('its end by a signal is 128 and the number', async () => {
    const { url } = await serve()
    const run = await startDlock([
      'run',
      '--url',
      url,
      '--key',
      'k',
      '--',
      'sh',
      '-c',
      'kill -9 $$',
    ])
    expect((await run.exited).code).toBe(137)
  })

  test('it finds its key and its token, and the lock is released after it', async () => {
    const { url, engine } = await serve()
    const args = ['run', '--url', url, '--key', 'naïve key', '--owner', 'me', '--', 'sh', '-c']
    const run = await startDlock([...args, 'echo "$DLOCK_KEY=$DLOCK_FENCING_TOKEN"; read -r _'])
    const [, token] = await run.waitForLine(/^naïve key=(\d+)$/)
    expect((await run.exited).code).toBe(1)
    expect(await engine.inspect('naïve key')).toBeUndefined()
    expect(await engine.tokens?.highestToken()).toBe(BigInt(token ?? 0))
  })

  test('it has the standard input, and options of its own need no --', async () => {
    const { url } = await serve()
    const args = [dlock, 'run', '--url', url, '--key', 'k', 'cat', '-n']
    const run = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    run.stdin.end('a line\n')
    expect((await text(run.stdout)).trim()).toBe('1\ta line')
  })

  test.each(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1'] as const)('it gets %s', async (signal) => {
    const { url } = await serve()
    const script = `trap 'exit 42' ${signal.slice(3)}; echo ready; while :; do sleep 0.05; done`
    const run = await startDlock(['run', '--url', url, '--key', 'k', '--', 'sh', '-c', script])
    await run.waitForLine(/^ready$/)
    run.signal(signal)
    expect((await run.exited).code).toBe(42)
  })

  test('it is not left alone by a Ctrl-Z, which would lose the lock', async () => {
    const { url } = await serve()
    const script = 'echo ready; read -r _ <"$0"; exit 3'
    const folder = await temporaryFolder()
    const fifo = join(folder, 'fifo')
    spawnSync('mkfifo', [fifo])
    const run = await startDlock([
      'run',
      '--url',
      url,
      '--key',
      'k',
      '--',
      'sh',
      '-c',
      script,
      fifo,
    ])
    await run.waitForLine(/^ready$/)
    run.signal('SIGTSTP')
    await run.waitForLine(/not suspended/)
    spawnSync('sh', ['-c', 'echo go >"$0"', fifo])
    expect((await run.exited).code).toBe(3)
  })

  test('what it leaves running is stopped before the lock is released', async () => {
    const { url, engine } = await serve()
    const script = 'sleep 600 & echo "left $!"'
    const run = await startDlock(['run', '--url', url, '--key', 'k', '--', 'sh', '-c', script])
    const [, pid] = await run.waitForLine(/^left (\d+)$/)
    const next = await engine.openSession('next', 60_000)
    await engine.forSession(next).acquire('k', 'next', 1_000, 60_000)
    expect(aliveOf([Number(pid)])).toEqual([])
    expect((await run.exited).code).toBe(0)
  })
})

describe('P-08: dlock run inside dlock run', () => {
  const under = (url: string, key: string, command: string[]): string[] =>
    ['run', '--url', url, '--key', key, '--'].concat(command)
  const nested = (url: string, command: string[]): string[] =>
    under(url, 'outer', [process.execPath, dlock].concat(under(url, 'inner', command)))

  test("the inner lock's variables win, and the exit status is passed through", async () => {
    const { url } = await serve()
    const script = 'echo "$DLOCK_KEY $DLOCK_FENCING_TOKEN"; exit 9'
    const run = await startDlock(nested(url, ['sh', '-c', script]))
    const [, token] = await run.waitForLine(/^inner (\d+)$/)
    expect(Number(token)).toBe(2)
    expect((await run.exited).code).toBe(9)
  })

  test('signals reach the command', async () => {
    const { url, engine } = await serve()
    const script = `trap 'exit 43' TERM; echo ready; while :; do sleep 0.05; done`
    const run = await startDlock(nested(url, ['sh', '-c', script]))
    await run.waitForLine(/^ready$/)
    run.signal('SIGTERM')
    expect((await run.exited).code).toBe(43)
    expect(await engine.inspect('outer')).toBeUndefined()
    expect(await engine.inspect('inner')).toBeUndefined()
  })

  test('the outer lock is lost: nobody is left alive, however deep', async () => {
    const { url, engine } = await serve()
    const run = await startDlock(nested(url, stubborn))
    const family = await familyOf(run)
    await engine.revoke('outer', 'test', 'taken away by a test')
    expect((await run.exited).code).toBe(122)
    await expect.poll(() => aliveOf(family), { timeout: 30_000 }).toEqual([])
  })
})

describe('P-07: the lock is lost', () => {
  test('revoked: TERM, then KILL to the whole group, and an exit status of its own', async () => {
    const { url, engine } = await serve()
    const args = ['run', '--url', url, '--key', 'k', '--ttl', '2s', '--']
    const run = await startDlock([...args, ...stubborn])
    const family = await familyOf(run)
    await engine.revoke('k', 'test', 'taken away by a test')
    expect((await run.exited).code).toBe(122)
    expect(aliveOf(family)).toEqual([])
    expect(run.lines.join('\n')).toContain('Stopping the command')
  })

  test('cut off from the service: nobody is alive when another gets the lock', async () => {
    const { port, engine } = await serve()
    await using network = await TcpProxy.start({ port })
    const url = `http://127.0.0.1:${network.port}`
    const args = ['run', '--url', url, '--key', 'k', '--ttl', '8s', '--']
    const run = await startDlock([...args, ...stubborn])
    const family = await familyOf(run)
    network.blackHole()
    const next = await engine.openSession('next', 60_000)
    const lock = await engine.forSession(next).acquire('k', 'next', 1_000, 60_000)
    const alive = aliveOf(family)
    expect(lock?.ownerId).toBe('next')
    expect(alive).toEqual([])
    expect((await run.exited).code).toBe(122)
  })

  test('a command that minds SIGTERM can put its things in order', async () => {
    const { url } = await serve()
    const log = join(await temporaryFolder(), 'log')
    const script = `trap 'echo tidy >"$0"; exit 0' TERM; while :; do sleep 0.05; done`
    const args = ['run', '--url', url, '--key', 'k', '--ttl', '1m', '--max-hold', '500ms', '--']
    const run = await startDlock([...args, 'sh', '-c', script, log])
    expect((await run.exited).code).toBe(122)
    expect(await readFile(log, 'utf8')).toBe('tidy\n')
  })

  test('noticed late, after dlock was frozen past the lease: stopped all the same', async () => {
    const { url, engine } = await serve()
    const args = ['run', '--url', url, '--key', 'k', '--ttl', '1s', '--']
    const run = await startDlock([...args, ...stubborn])
    const family = await familyOf(run)
    run.signal('SIGSTOP')
    const next = await engine.openSession('next', 60_000)
    await engine.forSession(next).acquire('k', 'next', 1_000, 60_000)
    run.signal('SIGCONT')
    expect((await run.exited).code).toBe(122)
    expect(aliveOf(family)).toEqual([])
  })

  test('--max-hold: a hung command is stopped', async () => {
    const { url, engine } = await serve()
    const args = ['run', '--url', url, '--key', 'k', '--ttl', '3s', '--max-hold', '200ms', '--']
    const run = await startDlock([...args, 'sleep', '600'])
    expect((await run.exited).code).toBe(122)
    expect(run.lines.join('\n')).toContain('maxHoldMs')
    expect(await engine.inspect('k')).toBeUndefined()
  })

  test('nobody reads what dlock says any more: stopped all the same', async () => {
    const { url, engine } = await serve()
    const args = [dlock, 'run', '--url', url, '--key', 'k', '--ttl', '2s', '--', 'sleep', '600']
    const run = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    run.stderr.destroy()
    await expect.poll(() => engine.inspect('k'), { timeout: 30_000 }).toBeDefined()
    await engine.revoke('k', 'test', 'taken away by a test')
    expect(await once(run, 'exit')).toEqual([122, null])
  })

  test('kill -9 of dlock itself kills the command', async () => {
    const { url } = await serve()
    const run = await startDlock(['run', '--url', url, '--key', 'k', '--', ...stubborn])
    const family = await familyOf(run)
    run.signal('SIGKILL')
    await expect.poll(() => aliveOf(family), { timeout: 30_000 }).toEqual([])
  })
})

describe('a command that is not started', () => {
  test('because another holds the lock: 121, and who it is', async () => {
    const served = await serve()
    await occupy(served, 'k')
    const run = await startDlock([
      'run',
      '--url',
      served.url,
      '--key',
      'k',
      '--',
      'echo',
      'started',
    ])
    expect((await run.exited).code).toBe(121)
    expect(run.lines.join('\n')).toMatch(/held by other, token 1/)
    expect(run.lines).not.toContain('started')
  })

  test('because the wait was interrupted: 128 and the number, and no grant is left', async () => {
    const served = await serve()
    const leave = await occupy(served, 'k')
    const args = ['run', '--url', served.url, '--key', 'k', '--wait', '1h', '--', 'echo', 'started']
    const run = await startDlock(args)
    await expect
      .poll(async () => (await served.engine.inspect('k'))?.waiterCount, { timeout: 30_000 })
      .toBe(1)
    run.signal('SIGINT')
    expect((await run.exited).code).toBe(130)
    await leave()
    expect(await served.engine.inspect('k')).toBeUndefined()
    expect(run.lines).not.toContain('started')
  })

  test('because no service is there: 123, and what to do', async () => {
    const run = await startDlock([
      'run',
      '--url',
      'http://127.0.0.1:1',
      '--key',
      'k',
      '--',
      'echo',
      'started',
    ])
    expect((await run.exited).code).toBe(123)
    expect(run.lines).toEqual([expect.stringMatching(/no lock service answers at .*npm start/)])
  })

  test('because there is none, or it cannot be run: 127, 126, and the lock is free', async () => {
    const { url, engine } = await serve()
    const missing = await startDlock(['run', '--url', url, '--key', 'k', '--', '/no/such/command'])
    expect((await missing.exited).code).toBe(127)
    const forbidden = await startDlock(['run', '--url', url, '--key', 'k', '--', '/'])
    expect((await forbidden.exited).code).toBe(126)
    expect(await engine.inspect('k')).toBeUndefined()
  })

  test('waits its turn, when told to', async () => {
    const served = await serve()
    const leave = await occupy(served, 'k')
    const args = ['run', '--url', served.url, '--key', 'k', '--wait', '1h', '--', 'echo', 'started']
    const run = await startDlock(args)
    await expect
      .poll(async () => (await served.engine.inspect('k'))?.waiterCount, { timeout: 30_000 })
      .toBe(1)
    await leave()
    expect((await run.exited).code).toBe(0)
    expect(run.lines).toContain('started')
  })
})
