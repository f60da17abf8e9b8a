import { formatDuration, parseDuration } from '@dlock/system'

/** What a setting's value can be, and how people write it. */
export interface Kind<Value> {
  /** What is allowed, with its range; completes "must be …". */
  readonly allowed: string
  /** `undefined`: not allowed. */
  parse(text: string): Value | undefined
  /** As `parse` would read it. */
  format(value: Value): string
  /** A secret is never repeated in a message. */
  readonly secret?: boolean
}

/** Whole milliseconds, written with a unit: `250ms`, `15s`, `1.5s`, `1h`. */
export function duration(minMs: number, maxMs: number): Kind<number> {
  return {
    allowed: `a duration from ${formatDuration(minMs)} to ${formatDuration(maxMs)}, like 250ms, 15s or 1h`,
    parse(text) {
      const ms = parseDuration(text)
      return ms === undefined ? undefined : within(ms, minMs, maxMs)
    },
    format: formatDuration,
  }
}

export function wholeNumber(min: number, max: number): Kind<number> {
  return {
    allowed: `a whole number from ${min} to ${max}`,
    parse: (text) => (/^\d+$/.test(text) ? within(Number(text), min, max) : undefined),
    format: String,
  }
}

/** From 0 to below 1. */
export const fraction: Kind<number> = {
  allowed: 'a number from 0 to below 1',
  parse(text) {
    const value = /^\d?(\.\d+)?$/.test(text) && text !== '' ? Number(text) : Number.NaN
    return value < 1 ? value : undefined
  },
  format: String,
}

export function oneOf<Value extends string>(values: readonly Value[]): Kind<Value> {
  return {
    allowed: values.length === 1 ? String(values[0]) : `one of ${values.join(', ')}`,
    parse: (text) => values.find((value) => value === text),
    format: String,
  }
}

export const text: Kind<string> = {
  allowed: 'a text that is not blank',
  parse: (value) => (value.trim() === '' ? undefined : value),
  format: String,
}

/** It usually holds a password. */
export const postgresUrl: Kind<string> = {
  allowed: 'a URL like postgresql://user:password@host:5432/database',
  parse: (value) => (/^postgres(ql)?:$/.test(protocolOf(value) ?? '') ? value : undefined),
  format: () => '…',
  secret: true,
}

export const password: Kind<string> = {
  allowed: 'a text that is not empty',
  parse: (value) => (value === '' ? undefined : value),
  format: () => '…',
  secret: true,
}

/** Members of one cluster. */
export const endpoints: Kind<readonly string[]> = {
  allowed: 'a list like 10.0.0.1:2379,10.0.0.2:2379, without a scheme',
  parse(value) {
    const members = value.split(',').map((member) => member.trim())
    return members.every((member) => /^[^\s/,]+:\d{1,5}$/.test(member)) ? members : undefined
  },
  format: (members) => members.join(','),
}

function protocolOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).protocol : undefined
}

function within(value: number, min: number, max: number): number | undefined {
  return Number.isInteger(value) && value >= min && value <= max ? value : undefined
}
