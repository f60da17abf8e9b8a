import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfiguration } from '../src/configuration.ts'
import { type Configuration, flagOf, settings, variableOf } from '../src/settings.ts'
import { usage } from '../src/usage.ts'

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dlock-test-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function file(content: unknown): Promise<string> {
  const path = join(folder, 'lockd.json')
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

function configured(args: string[], env: Record<string, string> = {}): Configuration {
  const request = readConfiguration(args, env)
  if (request.kind !== 'run') throw new Error(JSON.stringify(request))
  return request.configuration
}

function mistakes(args: string[], env: Record<string, string> = {}): readonly string[] {
  const request = readConfiguration(args, env)
  return request.kind === 'mistakes' ? request.mistakes : []
}

describe('what is configured', () => {
  it('is the table of defaults when nothing is said', () => {
    expect(configured([])).toEqual({
      backend: 'pg',
      listenHost: '127.0.0.1',
      listenPort: 7400,
      insecure: false,
      defaultTtlMs: 30_000,
      maxTtlMs: 3_600_000,
      sessionTtlMs: 15_000,
      safetyMargin: 0.3,
      maxWaiters: 1000,
      logLevel: 'info',
      databaseUrl: undefined,
      databaseListenUrl: undefined,
      databaseFolder: undefined,
      etcdEndpoints: undefined,
      etcdNamespace: undefined,
      etcdUser: undefined,
      etcdPassword: undefined,
      etcdCa: undefined,
      etcdCert: undefined,
      etcdKey: undefined,
      etcdServerName: undefined,
      etcdClusterId: undefined,
    })
  })

  it('environment variables, the file, and flags take precedence in this order', async () => {
    const path = await file({ 'lock.max.ttl': '2h', 'lock.default.ttl': '20s' })
    const env = {
      LOCK_CONFIG: path,
      LOCK_MAX_TTL: '3h',
      LOCK_DEFAULT_TTL: '30s',
      LOCK_SESSION_TTL: '10s',
    }
    const { sessionTtlMs, maxTtlMs, defaultTtlMs } = configured(['--lock-default-ttl=1s'], env)
    expect({ sessionTtlMs, maxTtlMs, defaultTtlMs }).toEqual({
      sessionTtlMs: 10_000,
      maxTtlMs: 7_200_000,
      defaultTtlMs: 1_000,
    })
  })

  it('the flag that names the file wins over the variable', async () => {
    const path = await file({ 'lock.listen.port': 1234 })
    const env = { LOCK_CONFIG: join(folder, 'missing.json') }
    expect(configured(['--lock-config', path], env).listenPort).toBe(1234)
  })

  it.each([
    ['250ms', 250],
    ['15s', 15_000],
    ['1.5s', 1_500],
    ['5m', 300_000],
    ['1h', 3_600_000],
  ])('reads the duration %s', (text, ms) => {
    expect(configured(['--lock-default-ttl', text]).defaultTtlMs).toBe(ms)
  })

  it('names follow from the key, and no two settings share one', () => {
    expect(variableOf('lock.client.safety-margin')).toBe('LOCK_CLIENT_SAFETY_MARGIN')
    expect(flagOf('lock.client.safety-margin')).toBe('--lock-client-safety-margin')
    const keys = Object.values(settings).map(({ key }) => key)
    for (const nameOf of [variableOf, flagOf])
      expect(new Set(keys.map(nameOf)).size).toBe(keys.length)
  })

  it('every default is what its kind would read', () => {
    for (const { kind, default: value } of Object.values(settings)) {
      if (value !== undefined) expect(kind.parse(kind.format(value as never))).toBe(value)
    }
  })

  it('--help prints the whole table, whatever else is wrong', () => {
    expect(readConfiguration(['--nonsense', '--help'], { LOCK_NONSENSE: '1' })).toEqual({
      kind: 'help',
    })
    for (const { key } of Object.values(settings)) expect(usage()).toContain(`  ${key} `)
  })
})

describe('mistakes', () => {
  it.each([
    ['LOCK_DEFAULT_TTL', '0s', 'lock.default.ttl must be a duration from 1ms to 365d, like'],
    ['LOCK_DEFAULT_TTL', '15', 'got "15"'],
    ['LOCK_DEFAULT_TTL', '-1s', 'got "-1s"'],
    ['LOCK_DEFAULT_TTL', '0.5ms', 'got "0.5ms"'],
    ['LOCK_DEFAULT_TTL', '1e3s', 'got "1e3s"'],
    ['LOCK_DEFAULT_TTL', '', 'got ""'],
    ['LOCK_MAX_TTL', '366d', 'must be a duration from 1s to 365d'],
    ['LOCK_MAX_TTL', '999ms', 'must be a duration from 1s to 365d'],
    ['LOCK_SESSION_TTL', '61s', 'lock.session.ttl must be a duration from 1s to 1m'],
    ['LOCK_CLIENT_SAFETY_MARGIN', '1', 'must be a number from 0 to below 1'],
    ['LOCK_CLIENT_SAFETY_MARGIN', '30%', 'got "30%"'],
    ['LOCK_CLIENT_SAFETY_MARGIN', 'NaN', 'got "NaN"'],
    ['LOCK_MAX_WAITERS', '0', 'lock.max.waiters must be a whole number from 1 to 1000000'],
    ['LOCK_MAX_WAITERS', '1.5', 'got "1.5"'],
    ['LOCK_LISTEN_PORT', '65536', 'lock.listen.port must be a whole number from 0 to 65535'],
    ['LOCK_LISTEN_PORT', '0x10', 'got "0x10"'],
    ['LOCK_LISTEN_HOST', ' ', 'lock.listen.host must be a text that is not blank'],
    ['LOCK_LOG_LEVEL', 'verbose', 'must be one of debug, info, warn, error, fatal'],
    ['LOCK_BACKEND', 'redis', 'must be one of pg, etcd; got "redis"'],
    ['LOCKDB_URL', 'mysql://x:hunter2@y/z', 'must be a URL like postgresql://'],
  ])('%s=%s', (variable, value, message) => {
    const [mistake, ...others] = mistakes([], { [variable]: value })
    expect(mistake).toContain(`environment variable ${variable}: `)
    expect(mistake).toContain(message)
    expect(mistake).not.toContain('hunter2')
    expect(others).toEqual([])
  })

  it('ETCD_ENDPOINTS=http://a:2379', () => {
    expect(mistakes([], { LOCK_BACKEND: 'etcd', ETCD_ENDPOINTS: 'http://a:2379' })).toEqual([
      expect.stringContaining('must be a list like 10.0.0.1:2379,10.0.0.2:2379'),
    ])
  })

  it.each(['LOCK_DEFAULT_TLL', 'LOCKDB_UR', 'ETCD_ENDPOINT', 'PAYMENT_X', 'RAIL_STUB'])(
    'a variable that looks like one of ours and is none: %s',
    (variable) => {
      expect(mistakes([], { [variable]: 'x' })).toEqual([
        `environment variable ${variable}: there is no such setting`,
      ])
    },
  )

  it("others' variables are no mistake", () => {
    expect(mistakes([], { PATH: 'x', npm_lifecycle_event: 'start', DLOCK_URL: 'x' })).toEqual([])
  })

  it('all of them are named at once, each with its source', async () => {
    const path = await file({
      'lock.max.waiters': true,
      'lock.listen.port': -1,
      'lock.nonsense': 1,
    })
    const env = { LOCK_MAX_TTL: 'long', LOCK_TYPO: '1' }
    const args = ['--lock-config', path, '--lock-default-ttl', 'x', '--nope', 'stray', '-x']
    const all = mistakes([...args, '--lock-session-ttl'], env)
    for (const source of [
      'environment variable LOCK_MAX_TTL: ',
      'environment variable LOCK_TYPO: there is no such setting',
      `file ${path}, "lock.max.waiters": must be a text or a number`,
      `file ${path}, "lock.listen.port": lock.listen.port must be a whole number`,
      `file ${path}, "lock.nonsense": there is no such setting`,
      'flag --lock-default-ttl: lock.default.ttl must be a duration',
      'flag --nope: there is no such flag',
      'stray: is not a flag',
      'flag -x: there is no such flag',
      'flag --lock-session-ttl: needs a value',
    ]) {
      expect(all.join('\n')).toContain(source)
    }
    expect(all).toHaveLength(10)
  })

  it.each(['not json', '[]', 'null', '"text"'])('a file that holds %s', async (content) => {
    const path = await file(content)
    expect(mistakes(['--lock-config', path])).toEqual([expect.stringContaining(`file ${path}: `)])
  })

  it('a file that is not there', () => {
    expect(mistakes(['--lock-config', join(folder, 'none')])[0]).toContain('ENOENT')
  })

  it('settings that do not go together', () => {
    expect(mistakes(['--lock-default-ttl', '2h'])[0]).toContain(
      'must not be above lock.max.ttl, 1h',
    )
    expect(mistakes(['--lock-max-ttl', '10s', '--lock-default-ttl', '10s'])).toEqual([
      'lock.session.ttl, 15s, must not be above lock.max.ttl, 10s',
    ])
    expect(mistakes(['--lockdb-listen-url', 'postgres://h/d'])[0]).toContain('needs lockdb.url')
    expect(mistakes(['--lockdb-url', 'postgres://h/d', '--lockdb-folder', 'x'])[0]).toContain(
      'which lockdb.url replaces',
    )
  })

  it('are named beside values that are wrong by themselves, and none of those is compared', () => {
    const all = mistakes(['--lock-listen-host', '0.0.0.0', '--lock-default-ttl', '2h'], {
      LOCK_SESSION_TTL: 'x',
      LOCKDB_URL: 'mysql://h/d',
      LOCKDB_LISTEN_URL: 'postgres://h/d',
      LOCKDB_FOLDER: 'x',
    })
    expect(all).toEqual([
      expect.stringContaining('lock.session.ttl must be a duration'),
      expect.stringContaining('lockdb.url must be a URL'),
      'lock.default.ttl, 2h, must not be above lock.max.ttl, 1h',
      expect.stringContaining('Say --insecure'),
      expect.stringContaining('which lockdb.url replaces'),
    ])
  })

  it.each([
    [['--etcd-user', 'dlock'], 'etcd.user and etcd.password come together'],
    [
      ['--etcd-tls-ca', 'a', '--etcd-tls-cert', 'b'],
      'etcd.tls.cert and etcd.tls.key come together',
    ],
    [['--etcd-tls-server-name', 'etcd'], 'etcd.tls.ca is needed'],
    [['--lockdb-folder', 'x'], 'lockdb.folder is for lock.backend pg, not etcd'],
  ])('settings of etcd that do not go together: %s', (args, message) => {
    expect(mistakes(['--lock-backend', 'etcd', ...args])).toEqual([
      expect.stringContaining(message),
    ])
  })

  it('settings of a store that is not the one that is used', () => {
    expect(mistakes(['--etcd-endpoints', 'a:2379'])).toEqual([
      'etcd.endpoints is for lock.backend etcd, not pg',
    ])
  })

  it.each(['0.0.0.0', '::', '10.0.0.1', 'example.test', '127.0.0.1.example.test'])(
    'to listen on %s, unless --insecure is said aloud',
    (host) => {
      expect(mistakes(['--lock-listen-host', host])[0]).toContain('Say --insecure')
      expect(configured(['--lock-listen-host', host, '--insecure']).insecure).toBe(true)
      expect(mistakes(['--lock-listen-host', host], { INSECURE: 'true' })).toHaveLength(1)
    },
  )

  it('--insecure=false is not a way to say anything', () => {
    expect(mistakes(['--insecure=false'])[0]).toContain('takes no value')
  })
})
