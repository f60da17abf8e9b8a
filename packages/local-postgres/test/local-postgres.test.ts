import { spawnSync } from 'node:child_process'
import { access, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startProcess } from '@dlock/faults'
import { type Clock, systemClock } from '@dlock/system'
import { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  createDatabase,
  dropDatabase,
  type LocalPostgres,
  type LocalPostgresOptions,
  startLocalPostgres,
} from '../src/index.ts'

const asRoot = process.getuid?.() === 0
const hasSystemBinaries = await startLocalPostgres({ binaries: 'system' }).then(
  (postgres) => postgres.stop().then(() => true),
  () => false,
)

let folder: string
const servers: LocalPostgres[] = []

beforeEach(async () => {
  const parent = await mkdtemp(join(tmpdir(), 'dlock-test-'))
  spawnSync('chmod', ['755', parent])
  folder = join(parent, 'cluster')
})

afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop()
  await rm(join(folder, '..'), { recursive: true, force: true })
})

async function start(options: LocalPostgresOptions = {}): Promise<LocalPostgres> {
  const server = await startLocalPostgres({ folder, ...options })
  servers.push(server)
  return server
}

describe.each(['npm', 'system'] as const)('with the binaries of %s', (binaries) => {
  const test = it.skipIf(binaries === 'system' && !hasSystemBinaries)

  test('runs a durable server, on loopback alone, behind a password', async () => {
    const server = await start({ binaries, settings: { fsync: 'off', work_mem: '5MB' } })
    expect(await settings(server)).toEqual({
      data_checksums: 'on',
      fsync: 'on',
      full_page_writes: 'on',
      listen_addresses: '127.0.0.1',
      synchronous_commit: 'on',
      unix_socket_directories: '',
      work_mem: '5MB',
    })
    const stranger = new URL(server.url())
    stranger.password = 'guess'
    await expect(query(stranger.href, 'SELECT 1')).rejects.toThrow(/password/)
  })

  test('keeps its folder: what was committed is there after a restart', async () => {
    const first = await start({ binaries })
    await query(first.url(), 'CREATE TABLE kept AS SELECT 42 AS answer')
    await first.stop()
    expect(isAlive(first.pid)).toBe(false)
    const second = await start({ binaries })
    expect(await query(second.url(), 'SELECT answer FROM kept')).toEqual([{ answer: 42 }])
    expect(second.version).toBe(first.version)
  })
})

describe('lifetime', () => {
  it('without a folder, leaves nothing behind', async () => {
    const server = await startLocalPostgres()
    await server.stop()
    await server.stop()
    expect(isAlive(server.pid)).toBe(false)
    await expect(access(server.folder)).rejects.toThrow('ENOENT')
  })

  it('kill -9 of the owner stops the server and removes a throwaway folder', async () => {
    await using owner = await startProcess(process.execPath, {
      args: [ownerScript, 'throwaway', 'wait'],
    })
    const { pid, folder: throwaway } = await started(owner)
    expect(isAlive(pid)).toBe(true)
    await owner.kill()
    await expect.poll(() => isAlive(pid), { timeout: 30_000 }).toBe(false)
    await expect
      .poll(
        () =>
          access(throwaway).then(
            () => 'there',
            () => 'gone',
          ),
        { timeout: 30_000 },
      )
      .toBe('gone')
  })

  it('kill -9 of the owner, and a start right after it waits for the old server to end', async () => {
    await using owner = await startProcess(process.execPath, {
      args: [ownerScript, folder, 'wait'],
    })
    const { pid, url } = await started(owner)
    await query(url, 'CREATE TABLE kept AS SELECT 42 AS answer')
    await owner.kill()
    const next = await start()
    expect(isAlive(pid)).toBe(false)
    expect(await query(next.url(), 'SELECT answer FROM kept')).toEqual([{ answer: 42 }])
  })

  it('kill -9 of everything, supervisor and server too: nothing committed is lost', async () => {
    await using owner = await startProcess(process.execPath, {
      args: [ownerScript, folder, 'wait'],
    })
    const { pid, url } = await started(owner)
    await query(url, 'CREATE TABLE kept AS SELECT 42 AS answer')
    process.kill(pid, 'SIGKILL')
    await owner.kill()
    const next = await start()
    expect(await query(next.url(), 'SELECT answer FROM kept')).toEqual([{ answer: 42 }])
  })

  it('does not keep its owner alive', async () => {
    await using owner = await startProcess(process.execPath, { args: [ownerScript, 'throwaway'] })
    const { pid } = await started(owner)
    expect(await owner.exited).toEqual({ code: 0, signal: null })
    await expect.poll(() => isAlive(pid), { timeout: 30_000 }).toBe(false)
  })

  it('stops the server in bounded time though its supervisor is frozen', async () => {
    const hurried: Clock = {
      ...systemClock,
      setTimer: (ms, ...rest) => systemClock.setTimer(ms === 20_000 ? 1 : ms, ...rest),
    }
    const server = await start({ clock: hurried })
    const parent = spawnSync('ps', ['-o', 'ppid=', '-p', String(server.pid)], { encoding: 'utf8' })
    process.kill(Number(parent.stdout), 'SIGSTOP')
    await server.stop()
    await expect.poll(() => isAlive(server.pid), { timeout: 30_000 }).toBe(false)
  })

  it('tells the owner when the server ended by itself', async () => {
    const server = await start()
    process.kill(server.pid, 'SIGINT')
    expect(await server.ended).toContain('database system is shut down')
  })
})

describe('what it refuses', () => {
  /** A clock on which the wait for a folder in use is over soon. */
  const hurried = { ...systemClock, monotonicNanos: () => systemClock.monotonicNanos() * 40n }

  it('a second server on one folder, and says who is there', async () => {
    const first = await start()
    await expect(start({ clock: hurried })).rejects.toThrow(
      `${join(folder, 'cluster', 'data')} is in use by another PostgreSQL, process ${first.pid}`,
    )
    expect(await query(first.url(), 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  it('one of two that create a cluster in one folder at once', async () => {
    const both = await Promise.allSettled([start({ clock: hurried }), start({ clock: hurried })])
    expect(both.map((one) => one.status).sort()).toEqual(['fulfilled', 'rejected'])
    const refused = both.find((one) => one.status === 'rejected')
    expect(String(refused?.reason)).toContain('is in use by another PostgreSQL')
    expect(await query(servers[0]?.url() ?? '', 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  it('a cluster of another major version', async () => {
    await (await start()).stop()
    await writeFile(join(folder, 'cluster', 'data', 'PG_VERSION'), '11\n')
    await expect(start()).rejects.toThrow(/holds a cluster of PostgreSQL 11, but the binaries in/)
  })

  it('a port that is taken', async () => {
    await using taken = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => taken.once('listening', resolve))
    const { port } = taken.address() as { port: number }
    await expect(start({ port })).rejects.toThrow(`port ${port} of 127.0.0.1 is taken`)
  })

  it('a folder that is a file', async () => {
    await writeFile(folder, 'not a folder')
    await expect(start()).rejects.toThrow(`the folder ${folder} cannot be made`)
  })

  it.runIf(asRoot)('a folder that the user of postgres cannot enter', async () => {
    spawnSync('chmod', ['700', join(folder, '..')])
    await expect(start()).rejects.toThrow(/cannot be entered by the user .*chmod a\+x/)
  })
})

describe('databases', () => {
  it('are created under a name of their own, or a given one, and dropped with their users', async () => {
    const server = await start()
    const url = await createDatabase(server.url())
    const named = await createDatabase(server.url(), 'ä "quoted" name')
    const user = new Client({ connectionString: url })
    user.on('error', () => {})
    await user.connect()
    const cutOff = new Promise((resolve) => user.once('end', resolve))
    await dropDatabase(url)
    await dropDatabase(url)
    await cutOff
    expect(await query(named, 'SELECT current_database() AS name')).toEqual([
      { name: 'ä "quoted" name' },
    ])
    await expect(query(url, 'SELECT 1')).rejects.toThrow('does not exist')
  })
})

const ownerScript = fileURLToPath(new URL('owner.js', import.meta.url))

async function started(owner: {
  waitForLine(pattern: RegExp): Promise<RegExpExecArray>
}): Promise<{ pid: number; folder: string; url: string }> {
  return JSON.parse((await owner.waitForLine(/^\{.*\}$/))[0])
}

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

async function settings(server: LocalPostgres): Promise<Record<string, string>> {
  const rows = await query(
    server.url(),
    `SELECT name, current_setting(name) AS value FROM pg_settings WHERE name IN ('data_checksums',
      'fsync', 'full_page_writes', 'listen_addresses', 'synchronous_commit',
      'unix_socket_directories', 'work_mem')`,
  )
  return Object.fromEntries(
    (rows as { name: string; value: string }[]).map((r) => [r.name, r.value]),
  )
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
