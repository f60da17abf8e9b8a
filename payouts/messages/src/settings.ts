import { formatDuration, parseDuration } from '@dlock/system'

/** How a setting's text becomes its value; `undefined` when it does not. */
export interface Kind<Value> {
  readonly parse: (text: string) => Value | undefined
  /** What is allowed, for the message. */
  readonly allowed: string
  readonly secret?: boolean
}

export const flag: Kind<boolean> = {
  parse: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
  allowed: 'true or false',
}
export const url: Kind<string> = {
  parse: (text) => (URL.canParse(text) ? text.replace(/\/$/, '') : undefined),
  allowed: 'a URL',
}
export const databaseUrl: Kind<string> = { ...url, allowed: 'a PostgreSQL URL', secret: true }
export const wholeNumber = (min: number, max: number): Kind<number> => ({
  parse: (text) => {
    const value = Number(text)
    return /^\d+$/.test(text) && value >= min && value <= max ? value : undefined
  },
  allowed: `a whole number from ${min} to ${max}`,
})
export const duration = (minMs: number, maxMs: number): Kind<number> => ({
  parse: (text) => {
    const ms = parseDuration(text)
    return ms !== undefined && ms >= minMs && ms <= maxMs ? ms : undefined
  },
  allowed: `a duration from ${formatDuration(minMs)} to ${formatDuration(maxMs)}, such as 250ms`,
})
export const rate: Kind<number> = {
  parse: (text) => {
    const value = Number(text)
    return text !== '' && value >= 0 && value <= 1 ? value : undefined
  },
  allowed: 'a number from 0 to 1',
}
export const text: Kind<string> = {
  parse: (value) => (value.trim() === '' ? undefined : value),
  allowed: 'not blank',
}

/** Absent `fallback`: required. */
export interface Setting<Value> {
  readonly key: string
  readonly kind: Kind<Value>
  readonly fallback?: Value
}

export type Settings<T> = { readonly [Name in keyof T]: Setting<T[Name]> }

/**
 * A service's settings from its environment: `rail.stub.latency` is `RAIL_STUB_LATENCY`. A variable
 * that begins like ours and is not in the table is a mistake: a typo that silently kept a default
 * is how a safety margin gets lost.
 *
 * @throws Error that names every mistake at once, and no secret
 */
export function readSettings<T>(
  table: Settings<T>,
  env: Readonly<Record<string, string | undefined>>,
): T {
  const mistakes: string[] = []
  const known = new Set<string>()
  const values: Record<string, unknown> = {}
  for (const [name, setting] of Object.entries(table) as [string, Setting<unknown>][]) {
    const variable = setting.key.replaceAll(/[.-]/g, '_').toUpperCase()
    known.add(variable)
    const given = env[variable]
    const value = given === undefined ? setting.fallback : setting.kind.parse(given)
    if (value !== undefined) values[name] = value
    else if (given === undefined) mistakes.push(`${variable} is required`)
    else {
      const got = setting.kind.secret ? 'something else' : JSON.stringify(given)
      mistakes.push(`${variable} must be ${setting.kind.allowed}, got ${got}`)
    }
  }
  for (const variable of Object.keys(env)) {
    if (/^(PAYMENT|PAYDB|RAIL|RAILDB|PAYOUT)_/.test(variable) && !known.has(variable)) {
      mistakes.push(`${variable}: there is no such setting`)
    }
  }
  if (mistakes.length > 0) throw new Error(mistakes.join('\n'))
  return values as T
}
