import { type Clock, systemClock } from '@dlock/system'
import { type DestinationStream, destination, type Level, type Logger, pino } from 'pino'

/** The stable names of what this server logs, and how loudly. */
const eventLevels: Readonly<Record<LogEventName, Level>> = {
  lock_granted: 'info',
  lock_contended: 'debug',
  lock_released: 'info',
  lock_lost: 'info',
  lease_expired: 'warn',
  lock_revoked: 'warn',
  tokens_advanced: 'warn',
  session_opened: 'info',
  session_closed: 'info',
  session_expired: 'warn',
  token_regression: 'fatal',
  call_refused: 'debug',
  store_unavailable: 'warn',
  internal_error: 'error',
  server_listening: 'info',
  server_closed: 'info',
}

export type LogEventName =
  | 'lock_granted'
  | 'lock_contended'
  | 'lock_released'
  | 'lock_lost'
  | 'lease_expired'
  | 'lock_revoked'
  | 'tokens_advanced'
  | 'session_opened'
  | 'session_closed'
  | 'session_expired'
  | 'token_regression'
  | 'call_refused'
  | 'store_unavailable'
  | 'internal_error'
  | 'server_listening'
  | 'server_closed'

/** What a log is made of. */
export interface LogOptions {
  /** The `service` of every line; "lockd" unless given. */
  readonly service?: string
  /** The least level that is written; "info" unless given. */
  readonly level?: Level | 'silent'
  /** Default: standard output, a tenth of a second late at most; a killed process loses that. */
  readonly stream?: DestinationStream
  readonly clock?: Clock
}

/** A log of one JSON object a line, each with `time`, `level`, `service` and `event`. */
export function createLog(options: LogOptions = {}): Logger {
  const clock = options.clock ?? systemClock
  return pino(
    {
      level: options.level ?? 'info',
      base: { service: options.service ?? 'lockd' },
      timestamp: () => `,"time":"${clock.now().toISOString()}"`,
      formatters: { level: (level) => ({ level }) },
    },
    // A grant is a line, and a system call for each would cost more than the line.
    options.stream ?? destination({ sync: false, minLength: 16_000, periodicFlush: 100 }),
  )
}

/** Writes one event. Fields are public: no session id, no secret, no body. */
export function logEvent(log: Logger, event: LogEventName, fields: object): void {
  log[eventLevels[event]]({ event, ...fields })
}
