import type { IncomingMessage, Server } from 'node:http'
import { TextDecoder } from 'node:util'
import {
  type ErrorEnvelope,
  errorTable,
  Failure,
  MAX_BODY_BYTES,
  type Operation,
  OWNER_ID_HEADER,
  TRACEPARENT_HEADER,
} from '@dlock/protocol'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { Call, callerGone } from './call.ts'
import { type Calls, callTable } from './calls.ts'
import type { CallName } from './handlers.ts'
import { inputOf, soleHeader } from './http-input.ts'
import { connectionFailure, httpFailure, JSON_TYPE, refuseOnSocket } from './http-refusals.ts'
import { type Authenticate, identified } from './identity.ts'
import { invalid } from './invalid.ts'

export interface HttpServerParts {
  readonly calls: Calls
  readonly authenticate: Authenticate
  /** How long a request's headers, and a whole request, may take to arrive. Milliseconds. */
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

/** The framework, told to do nothing on its own: no defaults, no coercion, no words of its own. */
export function createHttpServer(parts: HttpServerParts): FastifyInstance {
  const { calls } = parts
  const app = Fastify({
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    exposeHeadRoutes: false,
    // While shutting down, calls that are let in are answered; waits are refused by the handlers.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 4_096 },
    requestTimeout: parts.requestTimeoutMs,
    http: {
      headersTimeout: parts.headersTimeoutMs,
      connectionsCheckingInterval: Math.min(parts.headersTimeoutMs, 1_000),
      requireHostHeader: false, // Node would answer without the envelope; see `checkHost`
    },
    frameworkErrors: (error, request, reply) => {
      sendFailure(calls, error, request as FastifyRequest, reply as FastifyReply)
    },
    clientErrorHandler: (error, socket) => {
      if (error.code === 'ECONNRESET') socket.destroy()
      else refuseOnSocket(socket, calls.refuse(connectionFailure(error), undefined))
    },
  })
  app.setErrorHandler((error, request, reply) => sendFailure(calls, error, request, reply))
  app.setNotFoundHandler(() => {
    // The path stays out of it: it may hold a session's id, and this is logged.
    throw new Failure('NOT_FOUND', 'there is nothing here; GET /docs lists what there is')
  })
  app.addHook('onRequest', async (request, reply) => {
    reply.header('Cache-Control', 'no-store')
    reply.header('X-Content-Type-Options', 'nosniff')
    checkHost(request.raw)
  })
  readJsonStrictly(app)
  refuseExpectations(app.server, calls)
  return app
}

/** L1 … L9, from the table. */
export function serveCalls(app: FastifyInstance, { calls, authenticate }: HttpServerParts): void {
  for (const name of Object.keys(callTable) as CallName[]) {
    const operation = callTable[name] as Operation<unknown, unknown>
    const url = operation.path.replaceAll(/\{(\w+)\}/g, ':$1')
    app.route({
      method: operation.method,
      url,
      handler: async (request, reply) => {
        const call = new Call({
          input: inputOf(operation, request),
          ownerId: soleHeader(request.raw, OWNER_ID_HEADER),
          traceparent: soleHeader(request.raw, TRACEPARENT_HEADER),
          identity: await identified(authenticate, request.raw),
        })
        reply.raw.once('close', () => {
          if (!reply.raw.writableFinished) call.abandon(callerGone())
        })
        const outcome = await calls.run(name, call)
        if (!outcome.ok) return sendEnvelope(outcome.envelope, reply)
        reply.code(operation.status)
        return operation.status === 204 ? reply.send() : sendJson(outcome.output, reply)
      },
    })
  }
}

/** After all routes: what has a path but not this method says so, with the methods it has. */
export function refuseOtherMethods(
  app: FastifyInstance,
  routes: ReadonlyMap<string, string[]>,
): void {
  for (const [url, allowed] of routes) {
    app.route({
      method: METHODS.filter((method) => !allowed.includes(method)),
      url,
      handler: async (request, reply) => {
        reply.header('Allow', allowed.join(', '))
        throw new Failure(
          'METHOD_NOT_ALLOWED',
          `${request.method} is none of ${allowed.join(', ')}`,
        )
      },
    })
  }
}

export function sendJson(value: unknown, reply: FastifyReply): FastifyReply {
  return reply.type(JSON_TYPE).send(JSON.stringify(value))
}

function sendFailure(
  calls: Calls,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const traceparent = request.headers[TRACEPARENT_HEADER]
  const envelope = calls.refuse(
    httpFailure(error),
    typeof traceparent === 'string' ? traceparent : undefined,
  )
  return sendEnvelope(envelope, reply)
}

function sendEnvelope(envelope: ErrorEnvelope, reply: FastifyReply): FastifyReply {
  const { retryAfterMillis } = envelope
  if (retryAfterMillis !== undefined) {
    reply.header('Retry-After', Math.ceil(retryAfterMillis / 1_000))
  }
  return sendJson(envelope, reply.code(errorTable[envelope.code].status))
}

function readJsonStrictly(app: FastifyInstance): void {
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  app.removeAllContentTypeParsers()
  const parse = async (_: FastifyRequest, body: Buffer): Promise<unknown> => {
    if (body.length === 0) return undefined
    try {
      return JSON.parse(utf8.decode(body)) as unknown
    } catch {
      throw invalid([{ field: '', message: 'must be JSON in UTF-8' }])
    }
  }
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, parse)
}

function checkHost({ headers, httpVersion }: IncomingMessage): void {
  if (httpVersion === '1.1' && headers.host === undefined) {
    throw invalid([{ field: 'Host', message: 'is required' }])
  }
}

/** Node would answer "417" and nothing else. */
function refuseExpectations(server: Server, calls: Calls): void {
  server.on('checkExpectation', (_, response) => {
    const failure = invalid([{ field: 'Expect', message: 'can only be 100-continue' }])
    const envelope = calls.refuse(failure, undefined)
    response.writeHead(errorTable[envelope.code].status, { 'Content-Type': JSON_TYPE })
    response.end(JSON.stringify(envelope))
  })
}
