import { createHash } from 'node:crypto'

/** One SQL statement. Its answer's rows are arrays of text, for the caller to read. */
export interface Statement {
  readonly name: string
  readonly text: string
}

/**
 * The name holds a digest of the text. A prepared statement belongs to a connection, and behind
 * a pooler several processes share one: two versions of this code must never meet under one name.
 */
export function statement(verb: string, text: string): Statement {
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 12)
  return { name: `dlock_${verb}_${digest}`, text }
}

/** The limit on waiting for row locks, for this statement alone: nothing stays on the connection. */
export function lockTimeout(parameter: string): string {
  return `set_config('lock_timeout', ${parameter}, true)`
}

/** The columns of what is asked, and their types. The first one is the key. */
export type Columns = Readonly<Record<string, 'text' | 'uuid' | 'bigint'>> & {
  readonly key: 'text' | 'uuid'
}

/** A statement that serves one ask, and its like that serves many; they differ in where asks come from. */
export interface AskStatement {
  readonly one: Statement
  readonly many: Statement
  readonly columns: Columns
}

/** @param sql the statement, given a `FROM` item with these columns and one row per ask */
export function askStatement(
  verb: string,
  columns: Columns,
  sql: (asked: string) => string,
): AskStatement {
  return {
    one: statement(verb, sql(askedByOne(columns))),
    many: statement(`${verb}_many`, sql(askedByMany(columns))),
    columns,
  }
}

/** As most calls come when there is little to do; it takes the server half the time. */
function askedByOne(columns: Columns): string {
  const items = Object.entries(columns).map(([name, type], i) => `$${i + 1}::${type} AS ${name}`)
  return `(SELECT ${items.join(', ')} FROM ${lockTimeout(`$${items.length + 1}`)})`
}

/**
 * Sorted, so that two statements lock the rows they share in one order. The number of asks is
 * redundant as a limit, but makes the planner expect few rows, and so look each key up in the index
 * instead of joining with the whole table; the plan is kept, and the table grows.
 */
function askedByMany(columns: Columns): string {
  const names = Object.keys(columns)
  const arrays = Object.values(columns).map((type, i) => `$${i + 1}::${type}[]`)
  const order = columns.key === 'text' ? 'r.key COLLATE "C"' : 'r.key'
  return `(
    SELECT r.* FROM ${lockTimeout(`$${names.length + 1}`)},
      unnest(${arrays.join(', ')}) AS r (${names.join(', ')})
    ORDER BY ${order} LIMIT $${names.length + 2}::int
  )`
}

/** The parameters: one row of text per ask, and for how long to wait for a locked row. */
export function parameters(
  columns: Columns,
  asks: readonly (readonly string[])[],
  lockMs: number,
): string[] {
  const [first] = asks
  if (asks.length === 1 && first !== undefined) return [...first, String(lockMs)]
  const arrays = Object.values(columns).map((type, i) => {
    const items = asks.map((ask) => ask[i] ?? '')
    return `{${(type === 'text' ? items.map(quoted) : items).join(',')}}`
  })
  return [...arrays, String(lockMs), String(asks.length)]
}

/** As an item of an array in PostgreSQL's own notation. */
function quoted(item: string): string {
  return `"${/["\\]/.test(item) ? item.replace(/["\\]/g, '\\$&') : item}"`
}
