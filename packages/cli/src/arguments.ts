import { readFileSync } from 'node:fs'
import { checkKey, checkMaxWaitMs, checkTtlMs } from '@dlock/lock-api'
import { parseFencingToken } from '@dlock/protocol'
import { parseDuration } from '@dlock/system'
import { InvalidArgumentError } from 'commander'

/** How each argument is read; commander puts its name in front of the message. */

export function keyArgument(text: string): string {
  return checked(() => checkKey(text))
}

export function leaseArgument(text: string): number {
  return checked(() => checkTtlMs(durationArgument(text), 'it'))
}

export function waitArgument(text: string): number {
  return checked(() => checkMaxWaitMs(durationArgument(text), 'it'))
}

function durationArgument(text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined) throw new InvalidArgumentError('Durations read 250ms, 15s, 5m or 1h.')
  return ms
}

export function tokenArgument(text: string): bigint {
  const token = parseFencingToken(text)
  if (token === undefined) {
    throw new InvalidArgumentError('A fencing token is a decimal number from 1 to 2^63 - 1.')
  }
  return token
}

export function tokenListArgument(text: string, previous: readonly bigint[] = []): bigint[] {
  return [...previous, tokenArgument(text)]
}

/** One token a line. `-`: standard input. */
export function tokenFileArgument(path: string): bigint[] {
  const text = checked(() => readFileSync(path === '-' ? 0 : path, 'utf8'))
  const lines = text.split('\n').map((line) => line.trim())
  return lines.filter((line) => line !== '').map(tokenArgument)
}

export function urlArgument(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw new InvalidArgumentError('It begins with http:// or https://.')
  }
  return url
}

export function urlListArgument(text: string, previous: readonly URL[] = []): URL[] {
  return [...previous, urlArgument(text)]
}

function checked<T>(check: () => T): T {
  try {
    return check()
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message)
  }
}
