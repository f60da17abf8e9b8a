import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { formatDuration } from '@dlock/system'
import { type Configuration, flagOf, type Setting, settings, variableOf } from './settings.ts'

/** What was asked for on the command line and in the environment. */
export type Request =
  | { readonly kind: 'help' }
  | { readonly kind: 'run'; readonly configuration: Configuration }
  | { readonly kind: 'mistakes'; readonly mistakes: readonly string[] }

/** A value for a setting, as written, and where that was. */
interface Given {
  readonly value: string
  readonly source: string
}

/** A typo that silently kept a default would be how a safety margin gets lost. */
const OUR_VARIABLES = /^(LOCK|LOCKDB|ETCD|PAYMENT|RAIL)_/

/** Names the configuration file. Not a setting: a file cannot name another. */
const FILE_VARIABLE = 'LOCK_CONFIG'
const FILE_FLAG = 'lock-config'

/**
 * Reads the environment, then the configuration file, then the flags, each taking precedence over
 * what came before. Every mistake is found, not only the first.
 */
export function readConfiguration(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Request {
  const mistakes: string[] = []
  const given = new Map<string, Given>()
  const flags = readFlags(args, mistakes)
  if (flags.help) return { kind: 'help' }
  readVariables(env, given, mistakes)
  const file = flags.file ?? env[FILE_VARIABLE]
  if (file !== undefined) readFile(file, given, mistakes)
  for (const [key, value] of flags.given) given.set(key, value)

  const values: Record<string, unknown> = { insecure: flags.insecure }
  for (const [name, setting] of Object.entries(settings) as [string, Setting][]) {
    values[name] = valueOf(setting, given.get(setting.key), mistakes)
  }
  const configuration = values as unknown as Configuration
  checkTogether(configuration, (name) => given.has(settings[name].key), mistakes)
  return mistakes.length === 0 ? { kind: 'run', configuration } : { kind: 'mistakes', mistakes }
}

function valueOf(setting: Setting, given: Given | undefined, mistakes: string[]): unknown {
  if (given === undefined) return setting.default
  const value = setting.kind.parse(given.value)
  if (value !== undefined) return value
  const got = setting.kind.secret ? 'something else' : JSON.stringify(given.value)
  mistakes.push(`${given.source}: ${setting.key} must be ${setting.kind.allowed}; got ${got}`)
  return undefined
}

function readVariables(
  env: Readonly<Record<string, string | undefined>>,
  given: Map<string, Given>,
  mistakes: string[],
): void {
  const keys = new Map(knownKeys().map((key) => [variableOf(key), key]))
  for (const [variable, value] of Object.entries(env)) {
    const key = keys.get(variable)
    const source = `environment variable ${variable}`
    if (key !== undefined && value !== undefined) given.set(key, { value, source })
    else if (variable !== FILE_VARIABLE && OUR_VARIABLES.test(variable)) {
      mistakes.push(`${source}: there is no such setting`)
    }
  }
}

function readFile(path: string, given: Map<string, Given>, mistakes: string[]): void {
  let content: unknown
  try {
    content = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    mistakes.push(`file ${path}: ${(error as Error).message}`)
    return
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    mistakes.push(`file ${path}: must hold one JSON object of settings`)
    return
  }
  for (const [key, value] of Object.entries(content)) {
    const source = `file ${path}, ${JSON.stringify(key)}`
    if (!knownKeys().includes(key)) mistakes.push(`${source}: there is no such setting`)
    else if (typeof value === 'string' || typeof value === 'number') {
      given.set(key, { value: String(value), source })
    } else mistakes.push(`${source}: must be a text or a number`)
  }
}

interface Flags {
  readonly help: boolean
  readonly insecure: boolean
  readonly file: string | undefined
  readonly given: ReadonlyMap<string, Given>
}

function readFlags(args: readonly string[], mistakes: string[]): Flags {
  const keys = new Map(knownKeys().map((key) => [flagOf(key).slice(2), key]))
  const text = { type: 'string' } as const
  const options = Object.fromEntries([...keys.keys(), FILE_FLAG].map((flag) => [flag, text]))
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true })
  const given = new Map<string, Given>()
  let help = false
  let insecure = false
  let file: string | undefined
  for (const token of tokens) {
    if (token.kind !== 'option') {
      mistakes.push(`${token.kind === 'positional' ? token.value : '--'}: is not a flag`)
      continue
    }
    const source = `flag ${token.rawName}`
    const key = keys.get(token.name)
    if (token.name === 'help' || token.rawName === '-h') help = true
    else if (token.name === 'insecure' && token.value === undefined) insecure = true
    else if (key === undefined && token.name !== FILE_FLAG) {
      mistakes.push(`${source}: there is no such flag, or it takes no value`)
    } else if (token.value === undefined) mistakes.push(`${source}: needs a value`)
    else if (key === undefined) file = token.value
    else given.set(key, { value: token.value, source })
  }
  return { help, insecure, file, given }
}

/** Whether somebody set it, rightly or wrongly. */
type IsGiven = (name: keyof typeof settings) => boolean

/**
 * What is right by itself and wrong beside something else. A value that is wrong by itself has been
 * named already, is `undefined` here, and is compared with nothing.
 */
function checkTogether(
  configuration: Partial<Configuration>,
  isGiven: IsGiven,
  mistakes: string[],
): void {
  const { backend, listenHost, insecure } = configuration
  checkLeases(configuration, mistakes)
  if (listenHost !== undefined && !isLoopback(listenHost) && insecure !== true) {
    mistakes.push(
      `lock.listen.host, ${listenHost}, is not loopback, and there is no authentication yet: whoever reaches it could take and revoke every lock. Say --insecure if that is meant`,
    )
  }
  if (backend === 'pg') checkPg(isGiven, mistakes)
  if (backend === 'etcd') checkEtcd(isGiven, mistakes)
}

/** A lease that is given when none is asked for must be one that may be asked for. */
function checkLeases(configuration: Partial<Configuration>, mistakes: string[]): void {
  const { maxTtlMs = Number.POSITIVE_INFINITY } = configuration
  for (const name of ['defaultTtlMs', 'sessionTtlMs'] as const) {
    const { [name]: ttlMs = 0 } = configuration
    if (ttlMs <= maxTtlMs) continue
    mistakes.push(
      `${settings[name].key}, ${formatDuration(ttlMs)}, must not be above lock.max.ttl, ${formatDuration(maxTtlMs)}`,
    )
  }
}

function checkPg(isGiven: IsGiven, mistakes: string[]): void {
  if (!isGiven('databaseUrl') && isGiven('databaseListenUrl')) {
    mistakes.push('lockdb.listen.url needs lockdb.url: the embedded PostgreSQL has no pooler')
  }
  if (isGiven('databaseUrl') && isGiven('databaseFolder')) {
    mistakes.push('lockdb.folder is for the embedded PostgreSQL, which lockdb.url replaces')
  }
  refuseOthers('etcd.', 'etcd', 'pg', isGiven, mistakes)
}

function checkEtcd(isGiven: IsGiven, mistakes: string[]): void {
  if (isGiven('etcdUser') !== isGiven('etcdPassword')) {
    mistakes.push('etcd.user and etcd.password come together')
  }
  if (isGiven('etcdCert') !== isGiven('etcdKey')) {
    mistakes.push('etcd.tls.cert and etcd.tls.key come together')
  }
  if (!isGiven('etcdCa') && (isGiven('etcdCert') || isGiven('etcdServerName'))) {
    mistakes.push('etcd.tls.ca is needed with the other settings of TLS')
  }
  refuseOthers('lockdb.', 'pg', 'etcd', isGiven, mistakes)
}

/** Whoever sets up another store than the one that is used may believe that it is used. */
function refuseOthers(
  prefix: string,
  theirs: Configuration['backend'],
  used: Configuration['backend'],
  isGiven: IsGiven,
  mistakes: string[],
): void {
  for (const name of Object.keys(settings) as (keyof typeof settings)[]) {
    const { key } = settings[name]
    if (!key.startsWith(prefix) || !isGiven(name)) continue
    mistakes.push(`${key} is for lock.backend ${theirs}, not ${used}`)
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

function knownKeys(): string[] {
  return Object.values(settings).map(({ key }) => key)
}
