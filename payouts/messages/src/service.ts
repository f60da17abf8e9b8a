import {
  type ErrorCode,
  envelopeOf,
  errorTable,
  Failure,
  failureOf,
  MAX_BODY_BYTES,
  type Operation,
  parseHeaderText,
} from '@dlock/protocol'
import { type Clock, type Ids, systemClock, systemIds } from '@dlock/system'
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { beginTrace, type SpanName } from './tracing.ts'

export interface ServiceParts {
  readonly log: Logger
  readonly metrics: Registry
  /** Whether the service can decide now; rejects when it cannot. */
  readonly checkReady: () => Promise<unknown>
  readonly clock?: Clock
  readonly ids?: Ids
}

/** What a handler gets besides its input: for its log lines. */
export interface CallContext {
  readonly traceId: string
  readonly log: Logger
}

export interface RunningService {
  readonly url: string
  /** Refuses new calls, finishes those in flight, then resolves. */
  close(): Promise<void>
}

/**
 * The frame of a payout service: one error envelope, strict inputs from one table of calls, health
 * and metrics. `/livez` touches nothing outside the process; `/readyz` fails closed.
 */
export class Service {
  readonly #app: FastifyInstance
  readonly #parts: ServiceParts
  readonly #ids: Ids
  #closing = false

  constructor(parts: ServiceParts) {
    this.#parts = parts
    this.#ids = parts.ids ?? systemIds
    this.#app = Fastify({ bodyLimit: MAX_BODY_BYTES, exposeHeadRoutes: false })
    this.#app.setErrorHandler((error, request, reply) => {
      const traceId = this.#traceIdOf(request)
      const failure = this.#failureOf(error, traceId)
      return reply
        .code(errorTable[failure.code].status)
        .type(JSON_TYPE)
        .send(JSON.stringify(envelopeOf(failure, { traceId, repeatable: true })))
    })
    this.#app.setNotFoundHandler(() => {
      throw new Failure('NOT_FOUND', 'there is nothing here')
    })
    this.#app.get('/livez', () => ({ status: 'alive' }))
    this.#app.get('/readyz', async () => {
      if (this.#closing) throw new Failure('STORE_UNAVAILABLE', 'shutting down')
      await parts.checkReady().catch(() => {
        throw new Failure('STORE_UNAVAILABLE', 'what this service depends on does not answer')
      })
      return { status: 'ready' }
    })
    this.#app.get('/metrics', async (_, reply) =>
      reply.type(parts.metrics.contentType).send(await parts.metrics.metrics()),
    )
  }

  /** For a route that is not JSON in and JSON out. */
  get app(): FastifyInstance {
    return this.#app
  }

  /** @param span the name of the step, for those that have one */
  serve<Input, Output>(
    operation: Operation<Input, Output>,
    handle: (input: Input, context: CallContext) => Promise<Output>,
    span?: SpanName,
  ): void {
    this.#app.route({
      method: operation.method,
      url: operation.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      handler: async (request, reply) => {
        const input = inputOf(operation as Operation<unknown, unknown>, request)
        const faults = operation.input.faults(input)
        if (faults.length > 0) throw invalid(faults)
        const { fencingToken: token } = input as { readonly fencingToken?: string }
        const step = beginTrace(this.#ids, {
          name: span,
          traceparent: traceparentOf(request),
          token,
        })
        const { traceId, spanId } = step
        ;(request as Traced).traceId = traceId
        const context = { traceId, log: this.#parts.log.child({ traceId, spanId }) }
        const output = await handle(input as Input, context).catch((error: unknown) => {
          step.end(failureOf(error).code)
          throw error
        })
        step.end()
        return reply.code(operation.status).type(JSON_TYPE).send(JSON.stringify(output))
      },
    })
  }

  async listen(host: string, port: number): Promise<RunningService> {
    const url = await this.#app.listen({ host, port })
    this.#parts.log.info({ event: 'service_listening', url })
    return {
      url,
      close: async () => {
        this.#closing = true
        await this.#app.close()
      },
    }
  }

  #failureOf(error: unknown, traceId: string): Failure {
    const code = FRAMEWORK_CODES[String((error as { code?: unknown } | null)?.code)]
    const failure = code === undefined ? failureOf(error) : new Failure(code, 'not readable JSON')
    if (failure.code === 'INTERNAL') {
      this.#parts.log.error({ event: 'internal_error', traceId, err: error })
    }
    return failure
  }

  /** Of the step that was begun for the request; else the caller's, or a new one. */
  #traceIdOf(request: FastifyRequest): string {
    const known = (request as Traced).traceId
    return known ?? beginTrace(this.#ids, { traceparent: traceparentOf(request) }).traceId
  }
}

type Traced = FastifyRequest & { traceId?: string }

function traceparentOf({ headers }: FastifyRequest): string | undefined {
  const { traceparent } = headers
  return typeof traceparent === 'string' ? traceparent : undefined
}

/** For an entry point: this process's clock, unless a test hands in its own. */
export function clockOf(parts: { readonly clock?: Clock }): Clock {
  return parts.clock ?? systemClock
}

const JSON_TYPE = 'application/json; charset=utf-8'

const FRAMEWORK_CODES: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_BAD_URL: 'VALIDATION_FAILED',
  FST_ERR_CTP_BODY_TOO_LARGE: 'BODY_TOO_LARGE',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'UNSUPPORTED_MEDIA_TYPE',
  FST_ERR_CTP_INVALID_JSON_BODY: 'VALIDATION_FAILED',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'VALIDATION_FAILED',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'VALIDATION_FAILED',
}

/** What is wrong with a request; a token that is none has a code of its own. */
export function invalid(
  faults: readonly { readonly field: string; readonly message: string }[],
): Failure {
  const code = faults.some(({ field }) => field === 'fencingToken')
    ? 'INVALID_TOKEN'
    : 'VALIDATION_FAILED'
  const said = faults.map(({ field, message }) => `${field} ${message}`).join('; ')
  return new Failure(code, `not valid: ${said}`, { details: { fields: faults } })
}

/** The flat input that a request spells; a field in the wrong place is an unknown field. */
function inputOf(
  operation: Operation<unknown, unknown>,
  request: FastifyRequest,
): Record<string, unknown> {
  const outside: Record<string, unknown> = { ...(request.params as Record<string, string>) }
  for (const [field, header] of Object.entries(operation.headers)) {
    const value = request.headers[header.toLowerCase()]
    const text = typeof value === 'string' ? parseHeaderText(value) : undefined
    if (text !== undefined) outside[field] = text
  }
  const carried = operation.method === 'GET' ? numbersRead(operation, request) : request.body
  if (carried !== undefined && carried !== null) {
    if (typeof carried !== 'object' || Array.isArray(carried)) {
      throw invalid([{ field: 'the body', message: 'must be a JSON object' }])
    }
    const misplaced = Object.keys(carried).filter(
      (field) => field in outside || field in operation.headers,
    )
    if (misplaced.length > 0) {
      throw invalid(misplaced.map((field) => ({ field, message: 'does not belong here' })))
    }
  }
  return { ...outside, ...(carried as object | undefined) }
}

/** A query is text; where the schema wants a whole number, its decimal spelling is one. */
function numbersRead(operation: Operation<unknown, unknown>, request: FastifyRequest): object {
  const { properties } = operation.input.json as { properties: Record<string, { type?: string }> }
  return Object.fromEntries(
    Object.entries(request.query as Record<string, unknown>).map(([field, text]) => {
      const isNumber =
        properties[field]?.type === 'integer' && /^(0|[1-9]\d{0,14})$/.test(String(text))
      return [field, isNumber ? Number(text) : text]
    }),
  )
}
