import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { RetryableLockError } from '@dlock/lock-api'
import { LockClient } from '@dlock/lock-client'
import { createTestDatabase, EtcdCluster } from '@dlock/services'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startListening, startLockd, temporaryFolder } from './start-lockd.ts'

async function database(): Promise<string> {
  const database = await createTestDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  return database.url
}

function clientOf(url: string): LockClient {
  const client = new LockClient({ url })
  onTestFinished(() => client.close())
  return client
}

describe('a start', () => {
  test('with nothing configured keeps the locks in an embedded PostgreSQL, beside where it runs', async () => {
    const cwd = await temporaryFolder()
    const env = { npm_lifecycle_event: 'start' }
    const { process: lockd, url } = await startListening([], { cwd, env })
    await lockd.waitForLine(/Ctrl-C stops it/)
    const screen = lockd.lines.filter((line) => !line.startsWith('{')).join('\n')
    expect(screen).toContain(`dlock is ready at ${url}`)
    expect(screen).toMatch(new RegExp(`${cwd}/\\.dlock/postgres \\(PostgreSQL 18`))
    expect(screen).toContain(`npx dlock run --url ${url} --key demo -- sleep 5`)
    expect(await (await fetch(`${url}/readyz`)).json()).toEqual({ status: 'ready' })
  })

  test('the first screen shows what can be typed: it works as it is', async () => {
    const env = { npm_lifecycle_event: 'start' }
    const { process: lockd, url } = await startListening(['--lockdb-url', await database()], {
      env,
    })
    const [curl] = await lockd.waitForLine(/curl .*v1\/sessions.*/)
    const [, body = '{}'] = /-d '(.*)'/.exec(curl) ?? []
    const headers = Object.fromEntries(
      [...curl.matchAll(/-H '([^:]+): ([^']+)'/g)].map(([, name, value]) => [name, value]),
    )
    const answer = await fetch(`${url}/v1/sessions`, { method: 'POST', headers, body })
    expect(answer.status).toBe(201)
  })

  test('without a person to read it there is nothing but JSON, one event a line', async () => {
    const { process: lockd, url } = await startListening(['--lockdb-url', await database()])
    const session = await clientOf(url).openSession('worker-7')
    const lock = await session.acquire('k')
    if (lock === undefined) throw new Error('not acquired')
    await session.release(lock)
    await lockd.waitForLine(/"event":"lock_released"/)
    expect((await lockd.stop()).code).toBe(0)
    const lines = lockd.lines.map((line) => JSON.parse(line))
    for (const line of lines) {
      expect(line).toMatchObject({ service: 'lockd', level: expect.any(String) })
      expect(new Date(line.time).toISOString()).toBe(line.time)
    }
    const events = lines.map(({ event }) => event)
    for (const event of ['server_listening', 'store_open', 'session_opened', 'lock_granted']) {
      expect(events).toContain(event)
    }
    expect(events.slice(-2)).toEqual(['stop_requested', 'server_closed'])
    expect(lines.find(({ event }) => event === 'lock_granted')).toMatchObject({
      key: 'k',
      ownerId: 'worker-7',
      fencingToken: '1',
    })
    expect(lockd.lines.join('\n')).not.toContain(lock.sessionId)
  })

  test('warns loudly of a database that forgets what it has acknowledged', async () => {
    const url = new URL(await database())
    url.searchParams.set('options', '-c synchronous_commit=off')
    const { process: lockd } = await startListening(['--lockdb-url', url.href])
    const [line] = await lockd.waitForLine(/.*synchronous_commit.*/)
    expect(JSON.parse(line)).toMatchObject({ level: 'warn', event: 'store_warning' })
  })
})

describe('with etcd', () => {
  test('it grants, over HTTP, what is kept in the namespace', async () => {
    await using etcd = await EtcdCluster.start()
    const flags = ['--lock-backend', 'etcd', '--etcd-endpoints', etcd.endpoints.join(',')]
    const { url } = await startListening([...flags, '--etcd-namespace', 'pay'])
    const session = await clientOf(url).openSession('worker-7')
    const lock = await session.acquire('k')
    const other = await startListening([...flags, '--etcd-namespace', 'pay'])
    expect(await clientOf(other.url).inspect('k')).toMatchObject({
      ownerId: 'worker-7',
      fencingToken: lock?.fencingToken,
    })
    const elsewhere = await startListening(flags)
    expect(await clientOf(elsewhere.url).inspect('k')).toBeUndefined()
  })

  test('that cannot be reached, or is another cluster than is meant, it does not start', async () => {
    const none = await startLockd(['--lock-backend', 'etcd', '--etcd-endpoints', '127.0.0.1:1'])
    expect((await none.exited).code).toBe(1)
    await none.waitForLine(/cannot start: cannot use etcd at 127\.0\.0\.1:1, namespace/)
    await using etcd = await EtcdCluster.start()
    const flags = ['--lock-backend', 'etcd', '--etcd-endpoints', etcd.endpoints.join(',')]
    const wrong = await startLockd([...flags, '--etcd-cluster-id', 'cafe'])
    expect((await wrong.exited).code).toBe(1)
    const [, id = ''] = await wrong.waitForLine(
      /this is cluster ([0-9a-f]+), and cafe was expected/,
    )
    await startListening([...flags, '--etcd-cluster-id', id])
  })
})

describe('it does not start, and says why', () => {
  test('configured wrongly: 2, and every mistake at once', async () => {
    const env = { LOCK_DEFAULT_TTL: '0s', LOCK_DEFUALT_TTL: '1s' }
    const lockd = await startLockd(
      ['--lock-listen-port', 'http', '--lock-listen-host', '0.0.0.0'],
      { env },
    )
    expect((await lockd.exited).code).toBe(2)
    await lockd.waitForLine(/See lockd --help/)
    // Four mistakes, between what they are and where to read more.
    expect(lockd.lines).toHaveLength(6)
    for (const named of ['LOCK_DEFUALT_TTL', '"0s"', '"http"', '0.0.0.0']) {
      expect(lockd.lines.join('\n')).toContain(named)
    }
  })

  test('on a port that is taken: 1, and what to do', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void other.close())
    await new Promise((resolve) => other.once('listening', resolve))
    const { port } = other.address() as AddressInfo
    const lockd = await startLockd([
      '--lock-listen-port',
      String(port),
      '--lockdb-url',
      await database(),
    ])
    expect((await lockd.exited).code).toBe(1)
    await lockd.waitForLine(new RegExp(`port ${port} of 127\\.0\\.0\\.1 is taken`))
    expect(lockd.lines.join('\n')).not.toMatch(/^\s+at /m)
  })

  test('without its database: 1, and no password in what it says', async () => {
    const lockd = await startLockd(['--lockdb-url', 'postgresql://me:hunter2@127.0.0.1:1/locks'])
    expect((await lockd.exited).code).toBe(1)
    await lockd.waitForLine(/lockd cannot start: cannot use PostgreSQL at 127\.0\.0\.1:1/)
    expect(lockd.lines.join('\n')).not.toMatch(/hunter2|^\s+at /m)
  })

  test('on data that another lockd uses: 1, and its process', async () => {
    const cwd = await temporaryFolder()
    await startListening([], { cwd })
    const second = await startLockd(['--lock-listen-port', '0'], { cwd })
    expect((await second.exited).code).toBe(1)
    await second.waitForLine(/is in use by another PostgreSQL, process \d+/)
  })
})

describe('asked to stop', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    'with %s it ends what waits, leaves the grants, and says so with its status',
    async (signal) => {
      const url = await database()
      const first = await startListening(['--lockdb-url', url])
      const holder = await clientOf(first.url).openSession('holder')
      const held = await holder.acquire('k')
      const waiter = await clientOf(first.url).openSession('waiter')
      const refused = waiter.acquire('k', { maxWaitMs: 20_000 }).catch((error: unknown) => error)
      await expect
        .poll(async () => (await clientOf(first.url).inspect('k'))?.waiterCount, {
          timeout: 30_000,
        })
        .toBe(1)
      first.process.signal(signal)
      expect(await first.process.exited).toEqual({ code: 0, signal: null })
      expect(await refused).toBeInstanceOf(RetryableLockError)
      const second = await startListening(['--lockdb-url', url])
      const found = await clientOf(second.url).inspect('k')
      expect(found?.fencingToken).toBe(held?.fencingToken)
    },
  )

  test('while it starts, it starts no more', async () => {
    const cwd = await temporaryFolder()
    const lockd = await startLockd(['--lock-listen-port', '0'], { cwd })
    lockd.signal('SIGTERM')
    const { code, signal } = await lockd.exited
    expect(code === 0 || signal === 'SIGTERM').toBe(true)
  })

  test('it ends, with 1, when its embedded PostgreSQL is gone', async () => {
    const cwd = await temporaryFolder()
    const { process: lockd } = await startListening(['--lock-log-level', 'debug'], { cwd })
    const [, pid] = await lockd.waitForLine(/\[(\d+)\] LOG: {2}database system is ready/)
    process.kill(Number(pid), 'SIGKILL')
    expect((await lockd.exited).code).toBe(1)
    expect(lockd.lines.join('\n')).toContain('"event":"store_gone"')
  })
})
