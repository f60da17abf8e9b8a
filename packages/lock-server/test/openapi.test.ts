import {
  CONNECT_PATH,
  EVENTS_PATH,
  errorEnvelope,
  listings,
  operations,
  tokenCounterOperations,
} from '@dlock/protocol'
import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, test } from 'vitest'
import { callTable } from '../src/calls.ts'
import { openApiDocument } from '../src/openapi.ts'
import { send, serve } from './serve.ts'

interface Described {
  readonly operationId: string
  readonly parameters?: readonly { name: string; in: string; required: boolean; schema: object }[]
  readonly requestBody?: { content: { 'application/json': { schema: Closed } } }
  readonly responses: Record<string, { description: string; content?: object }>
}
interface Closed {
  readonly properties: Record<string, object>
  readonly required?: readonly string[]
  readonly additionalProperties: boolean
}

async function served(): Promise<{ paths: Record<string, Record<string, Described>> }> {
  const { text } = await send(await serve(), { path: '/openapi.json' })
  return JSON.parse(text) as never
}

test('the document is valid OpenAPI 3.1', async () => {
  const result = await new Validator().validate(await served())
  expect(result.errors).toBeUndefined()
  expect(result.valid).toBe(true)
})

test('every route is in it, and nothing else', async () => {
  const { paths } = await served()
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const table = Object.values({ ...operations, ...listings, ...tokenCounterOperations })
  const routes = [
    ...table.map(({ method, path }) => `${method} ${path}`),
    ...[EVENTS_PATH, CONNECT_PATH, '/livez', '/readyz', '/metrics', '/openapi.json', '/docs'].map(
      (path) => `GET ${path}`,
    ),
  ]
  expect(described.sort()).toEqual(routes.sort())
})

test('every path of it is served: none is 404', async () => {
  const server = await serve()
  for (const path of Object.keys((await served()).paths)) {
    if (path === EVENTS_PATH) continue // never ends
    const reply = await send(server, { path: path.replaceAll(/\{\w+\}/g, 'k') })
    expect([path, reply.status === 404]).toEqual([path, false])
  }
})

describe('the schemas in it are the ones that requests are checked with', () => {
  const { paths } = openApiDocument() as unknown as Awaited<ReturnType<typeof served>>
  test.each(Object.entries({ ...operations, ...listings, ...tokenCounterOperations }))(
    '%s',
    (name, operation) => {
      const described = paths[operation.path]?.[operation.method.toLowerCase()]
      expect(described?.operationId).toBe(name)
      const input = operation.input.json as Closed
      const body = described?.requestBody?.content['application/json'].schema
      const parameters = (described?.parameters ?? []).filter(({ name: n }) => n !== 'X-Owner-Id')
      const fieldOf = (header: string): string =>
        Object.entries(operation.headers).find(([, called]) => called === header)?.[0] ?? header
      const placed = [
        ...parameters.map((parameter) => [fieldOf(parameter.name), parameter.schema] as const),
        ...Object.entries(body?.properties ?? {}),
      ]
      // The same objects, not copies of them.
      expect(placed.map(([field]) => field).sort()).toEqual(Object.keys(input.properties).sort())
      for (const [field, schema] of placed) expect(schema).toBe(input.properties[field])
      const required = [
        ...parameters.filter((parameter) => parameter.required).map(({ name: n }) => fieldOf(n)),
        ...(body?.required ?? []),
      ]
      expect(required.sort()).toEqual([...(input.required ?? [])].sort())
      expect(body?.additionalProperties ?? false).toBe(false)
      const answer = described?.responses[String(operation.status)]?.content
      if (operation.status === 204) expect(answer).toBeUndefined()
      else expect(answer).toEqual({ 'application/json': { schema: operation.output.json } })
    },
  )

  test('the envelope', () => {
    const { components } = openApiDocument() as unknown as { components: { schemas: object } }
    expect(components.schemas).toEqual({ ErrorEnvelope: errorEnvelope.json })
  })
})

test('the page beside it lists every operation, and needs no network', async () => {
  const reply = await send(await serve(), { path: '/docs' })
  expect(reply.status).toBe(200)
  for (const { method, path } of Object.values(callTable)) {
    expect(reply.text).toContain(`${method} ${path}`)
  }
  expect(reply.text).not.toMatch(/src=|https?:\/\/|<script/)
})
