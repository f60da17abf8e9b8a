import { formatHeaderText } from './headers.ts'
import type { Operation } from './operations.ts'
import { encodePathSegment } from './path.ts'

/** A call as it is sent over HTTP, less the caller's own headers. */
export interface HttpRequest {
  readonly method: string
  /** With the query, percent-encoded. */
  readonly path: string
  /** The operation's own headers. `X-Owner-Id` and authentication are the sender's to add. */
  readonly headers: Readonly<Record<string, string>>
  /** JSON text; `undefined`: no body. */
  readonly body: string | undefined
}

/** `input` spread over path, headers and the rest, as `operation` says. */
export function toHttpRequest<Input extends object>(
  operation: Operation<Input, unknown>,
  input: Input,
): HttpRequest {
  const rest = { ...input } as Record<string, Spelled | undefined>
  const take = (field: string): Spelled | undefined => {
    const value = rest[field]
    delete rest[field]
    return value
  }
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, field: string) =>
    encodePathSegment(String(take(field))),
  )
  const headers: Record<string, string> = {}
  for (const [field, header] of Object.entries(operation.headers)) {
    const value = take(field)
    if (value !== undefined) headers[header] = formatHeaderText(String(value))
  }
  const { method } = operation
  if (method === 'GET') return { method, path: path + queryOf(rest), headers, body: undefined }
  if (Object.keys(rest).length === 0) return { method, path, headers, body: undefined }
  headers['Content-Type'] = 'application/json'
  return { method, path, headers, body: JSON.stringify(rest) }
}

/** What a field that travels outside the body can be. */
type Spelled = string | number

function queryOf(fields: Readonly<Record<string, Spelled | undefined>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) query.set(name, String(value))
  }
  return query.size === 0 ? '' : `?${query.toString()}`
}
