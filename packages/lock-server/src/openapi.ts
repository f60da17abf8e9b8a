import {
  CONNECT_PATH,
  CONNECT_SUBPROTOCOL,
  commonFailures,
  type ErrorCode,
  EVENTS_PATH,
  errorEnvelope,
  errorTable,
  type Operation,
  OWNER_ID_HEADER,
  wireEvent,
} from '@dlock/protocol'
import { callTable } from './calls.ts'

/** What an OpenAPI document is to whoever only passes it on. */
export interface OpenApiDocument {
  readonly openapi: '3.1.0'
  readonly info: object
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>
  readonly components: object
}
export interface OpenApiOperation {
  readonly operationId: string
  readonly summary: string
  readonly parameters?: readonly object[]
  readonly requestBody?: object
  readonly responses: Readonly<Record<string, object>>
}

/** The schemas in it are the very objects that requests are checked with. */
export function openApiDocument(): OpenApiDocument {
  const paths: Record<string, Record<string, OpenApiOperation>> = {}
  const add = (path: string, method: string, operation: OpenApiOperation): void => {
    paths[path] = { ...paths[path], [method]: operation }
  }
  for (const [name, operation] of Object.entries(callTable)) {
    add(operation.path, operation.method.toLowerCase(), described(name, operation))
  }
  for (const [path, operation] of Object.entries(otherPaths)) add(path, 'get', operation)
  return {
    openapi: '3.1.0',
    info: {
      title: 'dlock lock service',
      version: 'v1',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      description:
        'Locks that stay safe when their holder does not: every grant is a lease with a fencing token. Tokens are decimal strings; times are for people. Every answer that is not 2xx is an ErrorEnvelope.',
    },
    paths,
    components: { schemas: { ErrorEnvelope: errorEnvelope.json } },
  }
}

interface ObjectSchema {
  readonly properties: Readonly<Record<string, object>>
  readonly required?: readonly string[]
}

function described(name: string, operation: Operation<never, unknown>): OpenApiOperation {
  const input = operation.input.json as ObjectSchema
  const inPath = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, field = '']) => field)
  const inHeaders = Object.entries(operation.headers)
  const rest = Object.keys(input.properties).filter(
    (field) => !inPath.includes(field) && !(field in operation.headers),
  )
  const isRequired = (field: string): boolean => input.required?.includes(field) === true
  const parameter = (field: string, place: string, called = field): object => ({
    name: called,
    in: place,
    required: isRequired(field),
    schema: input.properties[field],
  })
  const parameters = [
    ...inPath.map((field) => parameter(field, 'path')),
    ...inHeaders.map(([field, header]) => parameter(field, 'header', header)),
    ...(operation.write ? [ownerParameter] : []),
    ...(operation.method === 'GET' ? rest.map((field) => parameter(field, 'query')) : []),
  ]
  const hasBody = operation.method !== 'GET' && rest.length > 0
  return {
    operationId: name,
    summary: `${operation.summary} (${operation.number})`,
    parameters,
    ...(hasBody && { requestBody: bodyOf(input, rest) }),
    responses: {
      [operation.status]: {
        description: operation.summary,
        ...(operation.status !== 204 && { content: json(operation.output.json) }),
      },
      ...refusals([...operation.failures, ...commonFailures]),
    },
  }
}

const ownerParameter = {
  name: OWNER_ID_HEADER,
  in: 'header',
  required: true,
  schema: (callTable.openSession.input.json as ObjectSchema).properties['ownerId'],
}

/** The fields that neither path nor headers carry. Closed, like the whole input. */
function bodyOf(input: ObjectSchema, fields: readonly string[]): object {
  const required = fields.filter((field) => input.required?.includes(field) === true)
  return {
    required: required.length > 0,
    content: json({
      type: 'object',
      properties: Object.fromEntries(fields.map((field) => [field, input.properties[field]])),
      ...(required.length > 0 && { required }),
      additionalProperties: false,
    }),
  }
}

/** One response for each status, naming the codes that have it. */
function refusals(codes: readonly ErrorCode[]): Record<string, object> {
  const grouped = new Map<number, ErrorCode[]>()
  for (const code of codes) {
    const { status } = errorTable[code]
    grouped.set(status, [...(grouped.get(status) ?? []), code])
  }
  return Object.fromEntries(
    [...grouped].map(([status, named]) => [
      status,
      { description: named.join(', '), content: json(envelope) },
    ]),
  )
}

const envelope = { $ref: '#/components/schemas/ErrorEnvelope' }

function json(schema: object): object {
  return { 'application/json': { schema } }
}

function text(description: string, mediaType: string, schema: object = { type: 'string' }): object {
  return { description, content: { [mediaType]: { schema } } }
}

/** What is served beside the calls. */
const otherPaths: Readonly<Record<string, OpenApiOperation>> = {
  [EVENTS_PATH]: {
    operationId: 'events',
    summary: 'What happens on this server, as server-sent events (L10)',
    responses: {
      200: text("Each event's data is one of these", 'text/event-stream', wireEvent.json),
      ...refusals(['CONTENTION_EXCEEDED', 'NOT_LEADER', 'UNAUTHENTICATED']),
    },
  },
  [CONNECT_PATH]: {
    operationId: 'connect',
    summary: `The multiplexed connection: a WebSocket that speaks ${CONNECT_SUBPROTOCOL} and carries L1 to L8`,
    responses: {
      101: { description: 'Messages are JSON arrays of frames' },
      ...refusals(['UPGRADE_REQUIRED', 'VALIDATION_FAILED', 'UNAUTHENTICATED', 'FORBIDDEN']),
    },
  },
  '/livez': {
    operationId: 'livez',
    summary: 'The process answers',
    responses: { 200: { description: 'It does' } },
  },
  '/readyz': {
    operationId: 'readyz',
    summary: 'The store can decide now, and the server is not shutting down',
    responses: { 200: { description: 'Both' }, ...refusals(['NOT_LEADER', 'STORE_UNAVAILABLE']) },
  },
  '/metrics': {
    operationId: 'metrics',
    summary: 'Prometheus metrics',
    responses: { 200: text('The exposition format', 'text/plain') },
  },
  '/openapi.json': {
    operationId: 'openapi',
    summary: 'This document',
    responses: { 200: { description: 'OpenAPI 3.1', content: json({ type: 'object' }) } },
  },
  '/docs': {
    operationId: 'docs',
    summary: 'This document, to read',
    responses: { 200: text('A page', 'text/html') },
  },
}
