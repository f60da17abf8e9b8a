import { parseFencingToken } from '@dlock/lock-api'

/**
 * One line of a history: a call is sent (`invoke`), or its end is known (`ok`, `fail`, `info`). The
 * fields are those that Knossos-style checkers expect, `process`, `type`, `f`, `value` and `time`;
 * whoever wants calls with their answers, as Porcupine does, pairs the lines by `id`.
 */
export interface Event {
  /** Of the call: the same in its two lines, and in no others. */
  readonly id: number
  readonly process: number
  readonly session: string
  readonly type: 'invoke' | 'ok' | 'fail' | 'info'
  readonly f: 'acquire' | 'renew' | 'release' | 'revoke' | 'close'
  /** The token that is renewed, released, granted or revoked, in decimal; `null` for none. */
  readonly value: string | null
  /** In nanoseconds since the history's beginning, on the recorder's monotonic clock. */
  readonly time: number
  /** Of a grant or renewal: the holder's deadline, as `time`. */
  readonly until?: number
  /** Of a revocation, in decimal. */
  readonly floor?: string
  /** Of a `fail`: the service said no, in one attempt. */
  readonly refused?: boolean
}

/** The first line: what to repeat to get this history again, if it can be. */
export interface Header {
  readonly history: 1
  readonly key: string
  /** `null` when no seed decides the schedule: real processes, real networks. */
  readonly seed: number | null
  readonly backend: string
  readonly settings: Readonly<Record<string, string | number | boolean>>
}

/** What happened to one key. */
export interface History {
  readonly header: Header
  readonly events: readonly Event[]
}

/** As newline-delimited JSON: the header's line, then a line for each event, in order of time. */
export function formatHistory({ header, events }: History): string {
  return [header, ...events].map((line) => `${JSON.stringify(line)}\n`).join('')
}

/**
 * Reads what `formatHistory` wrote. Checks each line by itself; whether they fit together is
 * `harness/check`'s to find out.
 *
 * @throws SyntaxError that names the line
 */
export function parseHistory(text: string): History {
  const [first = '', ...rest] = text.split('\n').filter((line) => line !== '')
  return {
    header: parseLine(first, 1, isHeader),
    events: rest.map((line, index) => parseLine(line, index + 2, isEvent)),
  }
}

function parseLine<T>(line: string, number: number, is: (value: Fields) => boolean): T {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    throw new SyntaxError(`line ${number} is not JSON`)
  }
  if (typeof value === 'object' && value !== null && is(value as Fields)) return value as T
  throw new SyntaxError(`line ${number} is no ${number === 1 ? 'header' : 'event'}`)
}

type Fields = Readonly<Partial<Record<keyof Header | keyof Event, unknown>>>

function isHeader({ history, key, seed, backend, settings }: Fields): boolean {
  return (
    history === 1 &&
    typeof key === 'string' &&
    (seed === null || Number.isSafeInteger(seed)) &&
    typeof backend === 'string' &&
    typeof settings === 'object' &&
    settings !== null
  )
}

const TYPES: readonly unknown[] = ['invoke', 'ok', 'fail', 'info']
const FUNCTIONS: readonly unknown[] = ['acquire', 'renew', 'release', 'revoke', 'close']

function isEvent(event: Fields): boolean {
  const { id, process, session, type, f, value, time, until, floor, refused } = event
  return (
    Number.isSafeInteger(id) &&
    Number.isSafeInteger(process) &&
    typeof session === 'string' &&
    TYPES.includes(type) &&
    FUNCTIONS.includes(f) &&
    (value === null || isToken(value)) &&
    Number.isSafeInteger(time) &&
    (until === undefined || Number.isSafeInteger(until)) &&
    (floor === undefined || isToken(floor)) &&
    (refused === undefined || typeof refused === 'boolean')
  )
}

function isToken(value: unknown): boolean {
  return typeof value === 'string' && parseFencingToken(value) !== undefined
}
