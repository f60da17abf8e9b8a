import { ContentionError, NotLeaderError, type RetryableLockError } from '@dlock/lock-api'

/**
 * What is known of a statement that failed. `not-applied`: it changed nothing, for certain.
 * `unknown`: it may have happened.
 */
export type Fate = 'not-applied' | 'unknown'

/** A statement without an answer: what the caller is told, and what became of the statement. */
export class StatementFailure extends Error {
  readonly fate: Fate
  readonly told: RetryableLockError
  /** The connection has failed, or is in a state that nobody knows. */
  readonly breaksConnection: boolean
  /** The connection is a pooler's, and named statements do not work on it. */
  readonly forgetsStatements: boolean
  /** It was in the way of another statement, and is undone. */
  readonly metLock: boolean

  constructor(
    fate: Fate,
    told: RetryableLockError,
    about: Partial<
      Pick<StatementFailure, 'breaksConnection' | 'forgetsStatements' | 'metLock'>
    > = {},
  ) {
    super(told.message)
    this.fate = fate
    this.told = told
    this.breaksConnection = about.breaksConnection ?? false
    this.forgetsStatements = about.forgetsStatements ?? false
    this.metLock = about.metLock ?? false
  }
}

interface Meaning {
  readonly error: 'contention' | 'not-leader'
  readonly says: string
}

/**
 * SQLSTATE, whole or its class, to what it means to a caller. What is not in here is contention
 * too: nothing that PostgreSQL can say means "lost" or "held" (FR-27).
 */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  '25006': { error: 'not-leader', says: 'this server is read-only: it is no longer the primary' },
  '57P03': { error: 'not-leader', says: 'the server does not take connections now' },
  '40001': { error: 'contention', says: 'the statement conflicted with another one' },
  '40P01': { error: 'contention', says: 'the statement was in a deadlock' },
  '55P03': { error: 'contention', says: 'somebody else kept the row locked' },
  '57014': { error: 'contention', says: 'the statement was cancelled, or took too long' },
  '57P01': { error: 'contention', says: 'the server was shut down, or ended the connection' },
  '57P02': { error: 'contention', says: 'the server crashed' },
  '53300': { error: 'contention', says: 'the server has no connection left' },
  '42P01': { error: 'contention', says: "the schema is missing: run this package's migrate" },
  '42703': { error: 'contention', says: "the schema is old: run this package's migrate" },
  '2200H': { error: 'contention', says: 'the last fencing token was minted' },
  '26000': { error: 'contention', says: 'a pooler forgot a prepared statement' },
  '42P05': { error: 'contention', says: 'a pooler mixed up prepared statements' },
  '08': { error: 'contention', says: 'the connection failed' },
  '40': { error: 'contention', says: 'the transaction was rolled back' },
  '53': { error: 'contention', says: 'the server is short of something it needs' },
  '57': { error: 'contention', says: 'an operator stepped in' },
}

/** Of a pooler in transaction mode that does not follow prepared statements. */
const FORGOTTEN_STATEMENT: ReadonlySet<string> = new Set(['26000', '42P05'])

/** The wait for a locked row was too long, or for ever. */
const MET_LOCK: ReadonlySet<string> = new Set(['55P03', '40P01'])

/**
 * @param error what the driver threw
 * @param sent whether the statement had been handed to a connection
 */
export function translate(error: unknown, sent: boolean): StatementFailure {
  const code = textField(error, 'code')
  const meaning = code === undefined ? undefined : (MEANINGS[code] ?? MEANINGS[code.slice(0, 2)])
  const rolledBack = isRolledBack(textField(error, 'severity'), code)
  const fate: Fate = !sent || rolledBack ? 'not-applied' : 'unknown'
  const says = meaning?.says ?? (sent ? 'the connection failed' : 'no connection could be had')
  const message = `PostgreSQL could not decide: ${says}${code === undefined ? '' : ` (${code})`}; ${FATES[fate]}`
  const told =
    meaning?.error === 'not-leader' ? new NotLeaderError(message) : new ContentionError(message)
  return new StatementFailure(fate, told, {
    breaksConnection: sent && !rolledBack,
    forgetsStatements: code !== undefined && FORGOTTEN_STATEMENT.has(code),
    metLock: code !== undefined && MET_LOCK.has(code),
  })
}

/**
 * An `ERROR` rolls the statement back. Anything graver, and anything that is no answer of the
 * server's, may come after the commit. A server whose messages are in another language translates
 * the severity, too; there the code says it, where it is one that ends the statement alone.
 */
function isRolledBack(severity: string | undefined, code: string | undefined): boolean {
  if (severity === 'ERROR') return true
  if (severity === undefined || severity === 'FATAL' || severity === 'PANIC') return false
  return code !== undefined && ENDS_THE_STATEMENT_ALONE.test(code)
}

/** What is wrong with it or in its way: data, SQL, a deadlock, a lock, a cancellation, a standby. */
const ENDS_THE_STATEMENT_ALONE = /^(22|23|26|42|40P01|55P03|57014|25006)/

const FATES: Readonly<Record<Fate, string>> = {
  'not-applied': 'nothing was changed',
  unknown: 'the change may have happened',
}

/** No answer in time. */
export function timedOut(fate: Fate): StatementFailure {
  const where = fate === 'unknown' ? 'no answer' : 'no connection'
  const message = `PostgreSQL could not decide: ${where} within the deadline; ${FATES[fate]}`
  return new StatementFailure(fate, new ContentionError(message), { breaksConnection: true })
}

function textField(error: unknown, field: 'code' | 'severity'): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const value = (error as Record<string, unknown>)[field]
  return typeof value === 'string' ? value : undefined
}
