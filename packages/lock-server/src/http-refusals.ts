import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { type ErrorEnvelope, errorTable, Failure } from '@dlock/protocol'

/**
 * What the HTTP machinery refuses before a call is known, in the words of the one error table.
 * Anything else is passed on as it is.
 */
export function httpFailure(error: unknown): unknown {
  const code = (error as { code?: unknown } | null)?.code
  const refusal = typeof code === 'string' ? refusals[code] : undefined
  return refusal === undefined ? error : new Failure(refusal[0], refusal[1])
}

const refusals: Readonly<Record<string, readonly [Failure['code'], string]>> = {
  FST_ERR_BAD_URL: ['VALIDATION_FAILED', "the path's percent-encoding is not that of UTF-8"],
  // Of QUERY, before it is looked for. Nothing here answers to it.
  FST_ERR_ROUTE_MISSING_CONTENT_TYPE: ['NOT_FOUND', 'nothing here answers to QUERY'],
  FST_ERR_MAX_PARAM_LENGTH: ['VALIDATION_FAILED', 'a part of the path is longer than any key'],
  FST_ERR_CTP_BODY_TOO_LARGE: ['BODY_TOO_LARGE', 'the body is larger than 64 KiB'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'UNSUPPORTED_MEDIA_TYPE',
    'the body must be JSON, with Content-Type: application/json',
  ],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [
    'VALIDATION_FAILED',
    'the body is not as long as Content-Length says',
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ['REQUEST_TIMEOUT', 'the request took too long to arrive'],
  HPE_HEADER_OVERFLOW: ['HEADERS_TOO_LARGE', 'the headers are larger than 16 KiB'],
}

/** The answer to bytes that are no HTTP request. */
export function connectionFailure(error: Error): unknown {
  const known = httpFailure(error)
  return known === error ? new Failure('VALIDATION_FAILED', 'this is not HTTP') : known
}

/** The media type of everything that is said in JSON. */
export const JSON_TYPE = 'application/json; charset=utf-8'

/** Answers on a bare socket, where there is no response object, and ends it. */
export function refuseOnSocket(
  socket: Duplex,
  envelope: ErrorEnvelope,
  headers: readonly string[] = [],
): void {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const { status } = errorTable[envelope.code]
  const body = JSON.stringify(envelope)
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `Content-Type: ${JSON_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    ...headers,
  ]
  socket.once('finish', () => socket.destroy())
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
