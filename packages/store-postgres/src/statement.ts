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

/**
 * A `FROM` item with one row per caller: the arrays are parameters $1, $2, …; the last two
 * parameters are the limit on lock waits and the number of callers.
 *
 * Sorted, so that two statements lock the rows they share in one order. The number of callers is
 * redundant as a limit, but makes the planner expect few rows, and so look each key up in the index
 * instead of joining with the whole table; the plan is kept, and the table grows.
 */
export function asked(columns: Readonly<Record<string, string>>): string {
  const names = Object.keys(columns)
  const arrays = Object.values(columns).map((type, index) => `$${index + 1}::${type}[]`)
  return `(
    SELECT r.* FROM ${lockTimeout(`$${names.length + 1}`)},
      unnest(${arrays.join(', ')}) AS r (${names.join(', ')})
    ORDER BY r.key${columns['key'] === 'text' ? ' COLLATE "C"' : ''} LIMIT $${names.length + 2}::int
  )`
}

/** An array parameter in PostgreSQL's own notation. */
export function textArray(items: readonly string[]): string {
  return `{${items.map(quoted).join(',')}}`
}

/** Likewise, of what needs no quotes: numbers, tokens, checked session ids. */
export function plainArray(items: readonly (string | number | bigint)[]): string {
  return `{${items.join(',')}}`
}

function quoted(item: string): string {
  return `"${/["\\]/.test(item) ? item.replace(/["\\]/g, '\\$&') : item}"`
}
