import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@dlock/system'
import { describe, expect, onTestFinished, test } from 'vitest'
import { main } from '../src/index.ts'
import { type Served, serve } from './serve.ts'

interface Said {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** dlock in this process. `signal` sends it a signal. */
function say(
  args: readonly string[],
  { url }: Pick<Served, 'url'> = { url: 'http://127.0.0.1:1' },
  onOut: (line: string, signal: (name: NodeJS.Signals) => void) => void = () => {},
): Promise<Said> {
  const out: string[] = []
  const err: string[] = []
  const listeners = new Set<(signal: NodeJS.Signals) => void>()
  const signal = (name: NodeJS.Signals): void => {
    for (const listener of listeners) listener(name)
  }
  const place = args.includes('--url') || args.includes('--help') ? [] : ['--url', url]
  return main([...args, ...place], {
    env: {},
    clock: systemClock,
    out: (text) => {
      out.push(text)
      onOut(text, signal)
    },
    err: (text) => err.push(text),
    onSignal(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }).then((code) => ({ code, out: out.join('\n'), err: err.join('\n') }))
}

async function grant(served: Served, key: string, ownerId = 'worker-7'): Promise<bigint> {
  const sessionId = await served.engine.openSession(ownerId, 60_000)
  const lock = await served.engine.forSession(sessionId).tryAcquire(key, ownerId, 60_000)
  if (lock === undefined) throw new Error(`${key} is held already`)
  return lock.fencingToken
}

describe('dlock ls', () => {
  test('is a table of what is held, by prefix, over all pages', async () => {
    const served = await serve()
    expect(await say(['ls'], served)).toEqual({ code: 0, out: 'No lock is held.', err: '' })
    for (let n = 0; n < 120; n += 1) await grant(served, `job/${String(n).padStart(3, '0')}`)
    await grant(served, 'other')
    const { code, out } = await say(['ls', 'job/'], served)
    const lines = out.split('\n')
    expect(code).toBe(0)
    expect(lines[0]).toMatch(/^KEY {6}OWNER {5}TOKEN {2}ACQUIRED +EXPIRES +WAITING$/)
    expect(lines).toHaveLength(121)
    expect(lines[1]).toMatch(/^job\/000 {2}worker-7 {2}1 {6}\d{4}-\S+Z {2}\d{4}-\S+Z {2}0$/)
  })

  test('--json is one object a line', async () => {
    const served = await serve()
    await grant(served, 'a')
    await grant(served, 'b')
    const { out } = await say(['ls', '--json'], served)
    expect(out.split('\n').map((line) => JSON.parse(line))).toMatchObject([
      { key: 'a', ownerId: 'worker-7', fencingToken: '1', waiterCount: 0 },
      { key: 'b', fencingToken: '2' },
    ])
  })
})

describe('dlock inspect', () => {
  test('tells of one lock; 1 when nobody holds it', async () => {
    const served = await serve()
    await grant(served, 'k')
    const held = await say(['inspect', 'k'], served)
    expect(held.code).toBe(0)
    expect(held.out).toMatch(/^key +k\nowner +worker-7\ntoken +1\n/)
    expect(JSON.parse((await say(['inspect', 'k', '--json'], served)).out)).toMatchObject({
      held: true,
      fencingToken: '1',
    })
    expect(await say(['inspect', 'free'], served)).toEqual({
      code: 1,
      out: 'Nobody holds "free".',
      err: '',
    })
    expect(JSON.parse((await say(['inspect', 'free', '--json'], served)).out)).toMatchObject({
      held: false,
    })
  })
})

describe('dlock revoke', () => {
  const reason = ['--reason', 'the holder is stuck']

  test('takes the lock away, and says what is not fenced yet (decision 5)', async () => {
    const served = await serve()
    await grant(served, 'k')
    const { code, out } = await say(['revoke', 'k', ...reason, '--operator', 'ann'], served)
    expect(code).toBe(0)
    expect(out).toMatch(/^Revoked "k", token 1 \(record \S+\)\./)
    expect(out).toContain(
      'Not fenced yet: a resource that has seen no higher token still accepts 1.',
    )
    expect(await served.engine.inspect('k')).toBeUndefined()
    const revocations = await served.engine.listing?.listRevocations({
      cursor: undefined,
      limit: 9,
    })
    expect(revocations?.items).toMatchObject([{ operator: 'ann', reason: 'the holder is stuck' }])
  })

  test('--token: only the grant that is meant', async () => {
    const served = await serve()
    const token = await grant(served, 'k')
    const other = await say(['revoke', 'k', ...reason, '--token', '999'], served)
    expect(other.code).toBe(1)
    expect(other.err).toContain('is held with token 1 now')
    expect(await served.engine.inspect('k')).toBeDefined()
    const json = await say(['revoke', 'k', ...reason, '--token', String(token), '--json'], served)
    expect(JSON.parse(json.out)).toMatchObject({ revokedToken: '1' })
  })

  test('nobody holds it: 1', async () => {
    const { code, err } = await say(['revoke', 'k', ...reason], await serve())
    expect({ code, err }).toEqual({ code: 1, err: 'nobody holds "k"' })
  })

  test('a reason that says nothing is refused by the service', async () => {
    const served = await serve()
    await grant(served, 'k')
    const { code, err } = await say(['revoke', 'k', '--reason', 'oops'], served)
    expect(code).toBe(125)
    expect(err).toContain('reason')
  })
})

test('dlock sessions lists the clients, without their secrets', async () => {
  const served = await serve()
  expect((await say(['sessions'], served)).out).toBe('No session is open.')
  const sessionId = await served.engine.openSession('worker-7', 60_000)
  const { out } = await say(['sessions'], served)
  expect(out).toMatch(/^SESSION .*\n\S+ +worker-7 .* 0$/)
  const json = await say(['sessions', '--json'], served)
  expect(JSON.parse(json.out)).toMatchObject({ ownerId: 'worker-7', heldLockCount: 0 })
  expect(out + json.out).not.toContain(sessionId)
})

describe('dlock watch', () => {
  test.each([[[]], [['--json']]])('tells events until it is interrupted %j', async (flags) => {
    const served = await serve()
    const watching = say(['watch', ...flags], served, (line, signal) => {
      if (line.includes('lock_granted')) signal('SIGINT')
    })
    // Nothing tells when the stream is open; who comes too late tries again.
    const done = watching.then(() => true)
    for (let n = 0; ; n += 1) {
      await grant(served, `k${n}`)
      const pause = new Promise((resolve) => setTimeout(resolve, 20, false))
      if ((await Promise.race([done, pause])) === true) break
    }
    const { code, out } = await watching
    expect(code).toBe(0)
    if (flags.length > 0) {
      const types = out.split('\n').map((line) => JSON.parse(line).type)
      expect(types).toContain('lock_granted')
    } else {
      expect(out).toMatch(/Z {2}lock_granted {6}key="k\d+" ownerId="worker-7" fencingToken="\d+"/)
    }
  })
})

test('dlock watch says that the server is gone, with the code of the unavailable', async () => {
  const dying = createServer((_, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write(': hello\n\n', () => res.destroy())
  })
  await new Promise<void>((resolve) => dying.listen(0, '127.0.0.1', resolve))
  const { port } = dying.address() as AddressInfo
  const { code, err } = await say(['watch'], { url: `http://127.0.0.1:${port}` })
  expect(err).toMatch(/^the connection to .* was lost$/)
  expect(code).toBe(123)
  dying.close()
})

describe('dlock tokens', () => {
  test('INV-04: check compares with every fence; advance moves forward only', async () => {
    const served = await serve()
    await grant(served, 'k')
    const check = ['tokens', 'check', '--fence', '1', '--fence', '9007199254740993']
    const unsafe = await say(check, served)
    expect(unsafe.code).toBe(1)
    expect(unsafe.out).toContain('NOT SAFE')
    expect(unsafe.out).toContain('dlock tokens advance --above 9007199254740993')
    const advanced = await say(['tokens', 'advance', '--above', '9007199254740993'], served)
    expect(advanced).toMatchObject({ code: 0, out: 'Every later token is above 9007199254740993.' })
    expect((await say(['tokens', 'advance', '--above', '5'], served)).out).toContain(
      '9007199254740993',
    )
    expect(await say(check, served)).toMatchObject({ code: 0, err: '' })
    expect(JSON.parse((await say([...check, '--json'], served)).out)).toEqual({
      safe: true,
      highestToken: '9007199254740993',
      highestFence: '9007199254740993',
    })
    expect(await grant(served, 'next')).toBe(9007199254740994n)
  })

  test('fences come from a file too', async () => {
    const served = await serve()
    const folder = await mkdtemp(join(tmpdir(), 'dlock-test-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const file = join(folder, 'fences')
    await writeFile(file, '3\n\n 12 \n')
    const { code, out } = await say(['tokens', 'check', '--fences-from', file], served)
    expect(code).toBe(1)
    expect(out).toContain('a guard holds 12')
  })

  test('without a fence there is nothing to say', async () => {
    const { code, err } = await say(['tokens', 'check'], await serve())
    expect(code).toBe(125)
    expect(err).toContain('no fence to compare with')
  })
})

describe('wrong use: 125, one line, never a stack trace', () => {
  test.each([
    [['nonsense'], "unknown command 'nonsense'"],
    [['run', '--key', 'k'], "missing required argument 'command'"],
    [['run', 'true'], "required option '--key <key>' not specified"],
    [['run', '--key', '', 'true'], 'must not be blank'],
    [['run', '--key', 'x'.repeat(513), 'true'], 'from 1 to 512 bytes'],
    [['run', '--key', 'k', '--ttl', '0s', 'true'], 'from 1 to'],
    [['run', '--key', 'k', '--ttl', '15', 'true'], 'Durations read'],
    [['run', '--key', 'k', '--wait', '25h', 'true'], 'from 0 to 86400000'],
    [['run', '--key', 'k', '--max-hold', 'x', 'true'], 'Durations read'],
    [['run', '--key', 'k', '--owner', ' ', 'true'], 'must not be blank'],
    [['inspect', '\n'], 'must not be blank'],
    [['ls', '--nope'], "unknown option '--nope'"],
    [['ls', '--url', 'localhost:7400'], 'begins with http://'],
    [['revoke', 'k'], "required option '--reason <text>' not specified"],
    [['revoke', 'k', '--reason', 'because', '--token', '007'], 'from 1 to 2^63 - 1'],
    [['tokens', 'advance', '--above', '9223372036854775808'], 'from 1 to 2^63 - 1'],
    [['tokens', 'check', '--fence', '0'], 'from 1 to 2^63 - 1'],
    [['tokens', 'check', '--fences-from', '/no/such/file'], 'ENOENT'],
  ])('%j', async (args, message) => {
    const { code, out, err } = await say(args)
    expect(err).toContain(message)
    expect(code).toBe(125)
    expect(out + err).not.toMatch(/\n\s+at /)
  })

  test('nothing to do shows the help', async () => {
    const { code, out } = await say(['--help'])
    expect(code).toBe(0)
    expect(out).toContain('Usage: dlock')
    expect((await say(['run', '--help'])).out).toContain('121  another held the lock')
  })
})

describe('a service that is not there: 123, and what to do', () => {
  test.each([
    [['ls']],
    [['inspect', 'k']],
    [['sessions']],
    [['watch']],
    [['revoke', 'k', '--reason', 'the holder is stuck']],
    [['tokens', 'advance', '--above', '5']],
    [['tokens', 'check', '--fence', '5']],
  ])('%j', async (args) => {
    const { code, err } = await say(args)
    expect(code).toBe(123)
    expect(err).toMatch(/^no lock service answers at http:\/\/127\.0\.0\.1:1\. .*"npm start"/)
  })

  test.each(['hello', '{"items":[]'])('nor is whoever answers %j one', async (answer) => {
    const server = createServer((_, response) => response.end(answer)).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await new Promise((resolve) => server.once('listening', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const { code, err } = await say(['ls'], { url })
    expect(code).toBe(125)
    expect(err).toContain('not as a lock service does')
  })
})
