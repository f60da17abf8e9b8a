import type { IncomingMessage } from 'node:http'
import {
  decodePathSegment,
  type FieldFault,
  type Operation,
  parseHeaderText,
} from '@dlock/protocol'
import type { FastifyRequest } from 'fastify'
import { invalid } from './invalid.ts'

/**
 * The flat input that a request spells, each field from the one place where it belongs. What stands
 * elsewhere, twice, or nowhere it could be read is refused, never guessed.
 */
export function inputOf(
  operation: Operation<unknown, unknown>,
  request: FastifyRequest,
): Record<string, unknown> {
  const { headers } = operation
  const outside: Record<string, unknown> = { ...(request.params as Record<string, string>) }
  for (const [field, header] of Object.entries(headers)) {
    const value = soleHeader(request.raw, header, field)
    if (value !== undefined) outside[field] = value
  }
  const query = queryOf(request)
  const carried = operation.method === 'GET' ? numbersRead(operation, query) : bodyOf(request)
  const misplaced = [
    ...Object.keys(carried).filter((field) => field in outside || field in headers),
    ...(operation.method === 'GET' ? [] : Object.keys(query)),
  ]
  if (misplaced.length > 0) throw invalid(misplaced.map((field) => notHere(field)))
  return { ...outside, ...carried }
}

/** The one value of a header, `undefined` when it is absent. `field` is what faults call it. */
export function soleHeader(
  request: IncomingMessage,
  header: string,
  field: string = header,
): string | undefined {
  const values = request.headersDistinct[header.toLowerCase()]
  if (values === undefined) return undefined
  const [value = ''] = values
  if (values.length > 1) throw invalid([{ field, message: `${header} must be sent once` }])
  const text = parseHeaderText(value)
  if (text === undefined) throw invalid([{ field, message: `${header} must be UTF-8` }])
  return text
}

function notHere(field: string): FieldFault {
  return { field, message: 'is not a known field, or does not belong here' }
}

function bodyOf({ body }: FastifyRequest): Record<string, unknown> {
  if (body === undefined || body === null) return {}
  if (typeof body === 'object' && !Array.isArray(body)) return body as Record<string, unknown>
  throw invalid([{ field: '', message: 'must be a JSON object' }])
}

/** The framework keeps what it cannot decode as it is, and would look for that. */
function queryOf({ raw, query }: FastifyRequest): Record<string, unknown> {
  if (decodePathSegment(raw.url ?? '') === undefined) {
    throw invalid([{ field: '', message: "the query's percent-encoding is not that of UTF-8" }])
  }
  return query as Record<string, unknown>
}

/** A query is text. Where the schema wants a whole number, its one decimal spelling is one. */
function numbersRead(
  operation: Operation<unknown, unknown>,
  query: Record<string, unknown>,
): Record<string, unknown> {
  const { properties } = operation.input.json as { properties: Record<string, { type?: string }> }
  return Object.fromEntries(
    Object.entries(query).map(([field, text]) => {
      const isNumber = properties[field]?.type === 'integer'
      const isSpelled = typeof text === 'string' && /^(0|[1-9]\d{0,14})$/.test(text)
      return [field, isNumber && isSpelled ? Number(text) : text]
    }),
  )
}
