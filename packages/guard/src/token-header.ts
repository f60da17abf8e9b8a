import { parseFencingToken } from '@dlock/lock-api'
import { type Ids, systemIds } from '@dlock/system'
import { type Answer, answer } from './answers.ts'

/** As Node, and every framework on it, gives headers: names in lower case. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

/** The header that carries a fencing token; Node spells names so. */
const HEADER = 'x-fencing-token'

/** The request carries no usable token. Its message names what was wrong, not the whole header. */
export class InvalidFencingTokenError extends RangeError {
  override readonly name = 'InvalidFencingTokenError'
}

/**
 * The token of a request: `X-Fencing-Token`, decimal, 1 … 2^63 − 1, exactly once. Absent, signed,
 * padded, repeated, zero or too large is an error; nothing is ever coerced, least of all to 0.
 *
 * A handler reads it where it needs it and passes it on as an argument. It is deliberately not
 * attached to the request: a token in a request's scope finds its way into code that was never
 * handed one.
 *
 * @throws InvalidFencingTokenError
 */
export function fencingTokenOf(headers: Headers): bigint {
  const value = headers[HEADER]
  if (value === undefined) {
    throw new InvalidFencingTokenError('X-Fencing-Token is required on a protected write')
  }
  // Node joins a repeated header with a comma, which is no digit.
  const token = typeof value === 'string' ? parseFencingToken(value) : undefined
  if (token === undefined) {
    throw new InvalidFencingTokenError(
      'X-Fencing-Token must be a decimal number from 1 to 9223372036854775807, without sign, ' +
        'leading zero or space',
    )
  }
  return token
}

/** 400 `INVALID_TOKEN`. */
export function invalidTokenAnswer(error: InvalidFencingTokenError, traceId: string): Answer {
  const fields = [{ field: 'X-Fencing-Token', message: error.message.replace(/^\S+ /, '') }]
  return answer('INVALID_TOKEN', error.message, traceId, { fields })
}

/** The trace id of a request's W3C `traceparent`, or a new one when it has none. */
export function traceIdOf(headers: Headers, ids: Ids = systemIds): string {
  const parent = headers['traceparent']
  const match = typeof parent === 'string' ? TRACEPARENT.exec(parent) : null
  return match?.[1] ?? ids.uuid().replaceAll('-', '')
}

/** Not the all-zero trace id, which means "none"; version ff is forbidden. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}/
