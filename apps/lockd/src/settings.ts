import { MAX_TTL_MS } from '@dlock/lock-api'
import { duration, fraction, type Kind, oneOf, postgresUrl, text, wholeNumber } from './kinds.ts'

/** Everything that can be set about lockd. */
export interface Configuration {
  readonly backend: 'pg'
  readonly listenHost: string
  readonly listenPort: number
  /** Said aloud with the flag `--insecure`, and in no other way. */
  readonly insecure: boolean
  readonly defaultTtlMs: number
  readonly maxTtlMs: number
  readonly sessionTtlMs: number
  readonly safetyMargin: number
  readonly maxWaiters: number
  readonly logLevel: LogLevel
  /** `undefined`: the embedded PostgreSQL. */
  readonly databaseUrl: string | undefined
  /** A direct connection for notifications, when `databaseUrl` leads through a pooler. */
  readonly databaseListenUrl: string | undefined
  /** Where the embedded PostgreSQL keeps its cluster. `undefined`: lockd chooses. */
  readonly databaseFolder: string | undefined
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'fatal'

/** One row of the table. Its environment variable and its flag follow from its key. */
export interface Setting<Value = unknown> {
  readonly key: string
  readonly kind: Kind<Exclude<Value, undefined>>
  readonly default: Value
  /** What the default means, where its value does not say it. */
  readonly defaultSays?: string
  readonly help: string
}

export type Settings = {
  readonly [Name in Exclude<keyof Configuration, 'insecure'>]: Setting<Configuration[Name]>
}

/** The only table of what can be configured. Help, validation and all names come from it. */
export const settings: Settings = {
  backend: {
    key: 'lock.backend',
    kind: { ...oneOf(['pg']), allowed: 'pg (etcd comes with a later release)' },
    default: 'pg',
    help: 'The store that decides who holds what.',
  },
  listenHost: {
    key: 'lock.listen.host',
    kind: text,
    default: '127.0.0.1',
    help: 'The address to listen on. Any other than loopback takes --insecure.',
  },
  listenPort: {
    key: 'lock.listen.port',
    kind: wholeNumber(0, 65_535),
    default: 7_400,
    help: 'The port to listen on; 0 for one that is free.',
  },
  defaultTtlMs: {
    key: 'lock.default.ttl',
    kind: duration(1, MAX_TTL_MS),
    default: 30_000,
    help: "A lock's lease when the caller asks for none.",
  },
  maxTtlMs: {
    key: 'lock.max.ttl',
    kind: duration(1, MAX_TTL_MS),
    default: 3_600_000,
    help: 'The longest lease that a caller may ask for.',
  },
  sessionTtlMs: {
    key: 'lock.session.ttl',
    kind: duration(1_000, 60_000),
    default: 15_000,
    help: "A session's lease when the caller asks for none.",
  },
  safetyMargin: {
    key: 'lock.client.safety-margin',
    kind: fraction,
    default: 0.3,
    help: 'The part of a lease that its holder does not count on.',
  },
  maxWaiters: {
    key: 'lock.max.waiters',
    kind: wholeNumber(1, 1_000_000),
    default: 1_000,
    help: 'How many calls may wait for one key here.',
  },
  logLevel: {
    key: 'lock.log.level',
    kind: oneOf(['debug', 'info', 'warn', 'error', 'fatal']),
    default: 'info',
    help: 'The least important lines that are still logged.',
  },
  databaseUrl: {
    key: 'lockdb.url',
    kind: postgresUrl,
    default: undefined,
    defaultSays: 'the embedded PostgreSQL',
    help: 'The PostgreSQL that keeps the locks.',
  },
  databaseListenUrl: {
    key: 'lockdb.listen.url',
    kind: postgresUrl,
    default: undefined,
    defaultSays: 'lockdb.url',
    help: 'The same database without a pooler between, for notifications.',
  },
  databaseFolder: {
    key: 'lockdb.folder',
    kind: text,
    default: undefined,
    defaultSays: '.dlock/postgres',
    help: 'Where the embedded PostgreSQL keeps its data.',
  },
}

/** `lock.default.ttl` → `LOCK_DEFAULT_TTL` */
export function variableOf(key: string): string {
  return key.replaceAll(/[.-]/g, '_').toUpperCase()
}

/** `lock.default.ttl` → `--lock-default-ttl` */
export function flagOf(key: string): string {
  return `--${key.replaceAll('.', '-')}`
}
