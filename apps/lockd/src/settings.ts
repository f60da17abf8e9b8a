import { MAX_TTL_MS } from '@dlock/lock-api'
import {
  duration,
  endpoints,
  fraction,
  type Kind,
  oneOf,
  password,
  postgresUrl,
  text,
  wholeNumber,
} from './kinds.ts'

/** Everything that can be set about lockd. */
export interface Configuration {
  readonly backend: 'pg' | 'etcd'
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
  /** `undefined`: the one on this machine. */
  readonly etcdEndpoints: readonly string[] | undefined
  readonly etcdNamespace: string | undefined
  readonly etcdUser: string | undefined
  readonly etcdPassword: string | undefined
  /** Paths of files in PEM; without the authority's certificate, no TLS. */
  readonly etcdCa: string | undefined
  readonly etcdCert: string | undefined
  readonly etcdKey: string | undefined
  /** The name that the members' certificates carry, when it is not the endpoint's. */
  readonly etcdServerName: string | undefined
  /** The only cluster to talk to, in hexadecimal. `undefined`: whichever answers. */
  readonly etcdClusterId: string | undefined
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
    kind: oneOf(['pg', 'etcd']),
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
    // Sessions are leases as well, and none is shorter than a second.
    kind: duration(1_000, MAX_TTL_MS),
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
  etcdEndpoints: {
    key: 'etcd.endpoints',
    kind: endpoints,
    default: undefined,
    defaultSays: '127.0.0.1:2379',
    help: 'The members of the etcd cluster that keeps the locks.',
  },
  etcdNamespace: {
    key: 'etcd.namespace',
    kind: text,
    default: undefined,
    defaultSays: 'default',
    help: 'Which of the lock services that share the cluster this is.',
  },
  etcdUser: {
    key: 'etcd.user',
    kind: text,
    default: undefined,
    defaultSays: 'nobody',
    help: 'The user to sign in to etcd as.',
  },
  etcdPassword: {
    key: 'etcd.password',
    kind: password,
    default: undefined,
    defaultSays: 'none',
    help: 'Its password.',
  },
  etcdCa: {
    key: 'etcd.tls.ca',
    kind: text,
    default: undefined,
    defaultSays: 'no TLS',
    help: "The file with the certificate of the authority that signed the members'.",
  },
  etcdCert: {
    key: 'etcd.tls.cert',
    kind: text,
    default: undefined,
    defaultSays: 'none',
    help: 'The file with the certificate to show to etcd.',
  },
  etcdKey: {
    key: 'etcd.tls.key',
    kind: text,
    default: undefined,
    defaultSays: 'none',
    help: 'The file with its key.',
  },
  etcdServerName: {
    key: 'etcd.tls.server-name',
    kind: text,
    default: undefined,
    defaultSays: "the endpoint's",
    help: "The name in the members' certificates.",
  },
  etcdClusterId: {
    key: 'etcd.cluster-id',
    kind: text,
    default: undefined,
    defaultSays: 'whichever answers',
    help: 'The only cluster to talk to, in hexadecimal as etcd logs it.',
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
