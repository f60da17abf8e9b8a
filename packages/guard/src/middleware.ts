import type { Answer } from './answers.ts'
import {
  fencingTokenOf,
  type Headers,
  InvalidFencingTokenError,
  invalidTokenAnswer,
  traceIdOf,
} from './token-header.ts'

/** The part of Node's `IncomingMessage`, and of every framework's request on it, that is read. */
export interface GuardedRequest {
  readonly headers: Headers
}

/** The part of Node's `ServerResponse` that answers. */
export interface PlainResponse {
  statusCode: number
  setHeader(name: string, value: string): unknown
  end(body: string): unknown
}

/**
 * For `node:http`, Connect, Express and their like: refuses a request without a valid
 * `X-Fencing-Token` with 400 `INVALID_TOKEN`, before any handler has run. Mount it on protected
 * writes only; the handler then calls `fencingTokenOf(req.headers)`, which cannot throw any more.
 *
 * It checks how the token is spelled. Whether it is high enough only the resource knows, in the
 * transaction of the write.
 */
export function requireFencingToken(
  req: GuardedRequest,
  res: PlainResponse,
  next: (error?: unknown) => void,
): void {
  const refusal = refusalOf(req)
  if (refusal === undefined) next()
  else sendAnswer(res, refusal)
}

/** Writes an answer of the guard as JSON. */
export function sendAnswer(res: PlainResponse, { status, body }: Answer): void {
  res.statusCode = status
  res.setHeader('content-type', 'application/json; charset=utf-8')
  res.end(JSON.stringify(body))
}

/** The part of a Fastify instance that the plugin needs. */
export interface FastifyShape {
  addHook(
    name: 'onRequest',
    hook: (req: GuardedRequest, reply: FastifyReplyShape) => Promise<unknown>,
  ): unknown
}

/** The part of a Fastify reply that answers. */
export interface FastifyReplyShape {
  code(status: number): FastifyReplyShape
  send(body: unknown): FastifyReplyShape
}

/**
 * The same for Fastify: every route of the scope that it is registered in wants a valid
 * `X-Fencing-Token`. Register it in a scope of protected writes:
 *
 * ```ts
 * app.register(async (writes) => {
 *   await writes.register(fencingTokenPlugin)
 *   writes.post('/v1/items/:id', …)
 * })
 * ```
 */
export const fencingTokenPlugin: FencingTokenPlugin = Object.assign(
  async (app: FastifyShape): Promise<void> => {
    app.addHook('onRequest', async (req, reply) => {
      const refusal = refusalOf(req)
      return refusal === undefined ? undefined : reply.code(refusal.status).send(refusal.body)
    })
  },
  // The hook belongs to the scope that registers the plugin, not to a scope of the plugin's own.
  { [Symbol.for('skip-override')]: true },
)

/** What `app.register` takes. */
export type FencingTokenPlugin = (app: FastifyShape) => Promise<void>

function refusalOf(req: GuardedRequest): Answer | undefined {
  try {
    fencingTokenOf(req.headers)
    return undefined
  } catch (error) {
    if (!(error instanceof InvalidFencingTokenError)) throw error
    return invalidTokenAnswer(error, traceIdOf(req.headers))
  }
}
