import type { IncomingMessage, ServerResponse } from 'node:http'
import { checkKey, checkOwnerId, checkText, parseFencingToken } from '@dlock/lock-api'
import { type Clock, type Ids, systemClock, systemIds } from '@dlock/system'
import { type Answer, answer, fencedOutAnswer, fencedOutDetails } from './answers.ts'
import type { Attempt } from './attempt.ts'
import { type Forwarded, ForwardOnce, type Submitted } from './forward-once.ts'
import { sendAnswer } from './middleware.ts'
import type { PostgresPool } from './postgres-client.ts'
import {
  type Presentation,
  type PresentationLimits,
  presentOnce,
  type Reply,
} from './present-once.ts'
import {
  fencingTokenOf,
  InvalidFencingTokenError,
  invalidTokenAnswer,
  traceIdOf,
} from './token-header.ts'

/** What a fencing proxy is made of. */
export interface FencingProxyOptions {
  /** Of the proxy's own database, with `FENCE_TABLE` and `ATTEMPT_TABLE`. */
  readonly pool: PostgresPool
  /** The API behind. Its path is put before every request's. */
  readonly upstream: URL
  readonly limits?: Partial<PresentationLimits>
  /** Of requests; default 1 MiB. */
  readonly maxBodyBytes?: number
  /** Gets one event per guarded request; for the log and the counters. Must not throw. */
  readonly onEvent?: (event: ProxyEvent) => void
  readonly clock?: Clock
  readonly ids?: Ids
}

/** What became of one guarded request. Names are stable (NFR-08). */
export interface ProxyEvent {
  readonly event: 'forwarded' | 'not_presented' | 'fenced_out' | 'duplicate_submission_attempted'
  readonly traceId: string
  readonly ownerId: string
  readonly details: Readonly<Record<string, unknown>>
}

/** A `node:http` request handler. Never rejects. */
export type ProxyHandler = (req: IncomingMessage, res: ServerResponse) => Promise<void>

/** The proxy's own paths begin so; everything else belongs to the API behind. */
const OWN = '/-/'

/**
 * A guard in front of any HTTP API that cannot compare tokens, as a `node:http` request handler.
 *
 * GET, HEAD and OPTIONS pass through. Every other request needs four headers: `X-Lock-Key`,
 * `X-Fencing-Token`, `X-Owner-Id` and `X-Idempotency-Key`, and goes through `ForwardOnce`. A reply
 * of 2xx counts as done and one of 4xx as refused, and both are handed back as they are; 408, 425,
 * 429, 3xx and 5xx prove neither, and are answered 409 `RAIL_AMBIGUOUS`, for ever.
 *
 * Own paths: `GET /-/attempts?idempotencyKey=`, `POST /-/fences/{lockKey}/advance {floor}`,
 * `GET /-/livez`, `GET /-/readyz`. It has no authentication: bind it to loopback, or put something
 * in front of it that has.
 */
export function fencingProxy(options: FencingProxyOptions): ProxyHandler {
  const clock = options.clock ?? systemClock
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  const guard = new ForwardOnce<Presentation, Reply>({
    pool: options.pool,
    forward: async (presentation) => judge(await presentOnce(presentation, limits, clock)),
    clock,
    ...(options.ids && { ids: options.ids }),
  })
  return async (req, res) => {
    const traceId = traceIdOf(req.headers, options.ids ?? systemIds)
    try {
      const presentation = await presentationOf(req, options)
      if (req.url?.startsWith(OWN))
        return send(res, await ownPath(req, presentation, guard, traceId))
      if (SAFE.has(presentation.method)) {
        const presented = await presentOnce(presentation, limits, clock)
        if (presented.kind === 'answered') return handBack(res, presented.reply)
        return sendAnswer(res, answer('RAIL_UNAVAILABLE', presented.why, traceId))
      }
      await guarded(req, res, presentation, guard, traceId, options.onEvent ?? (() => undefined))
    } catch (error) {
      sendAnswer(res, refusalOf(error, traceId))
    }
  }
}

const DEFAULT_LIMITS: PresentationLimits = {
  connectTimeoutMs: 1_000,
  readTimeoutMs: 8_000,
  maxReplyBytes: 1_048_576,
}
const DEFAULT_MAX_BODY_BYTES = 1_048_576
const SAFE = new Set(['GET', 'HEAD', 'OPTIONS'])

async function guarded(
  req: IncomingMessage,
  res: ServerResponse,
  request: Presentation,
  guard: ForwardOnce<Presentation, Reply>,
  traceId: string,
  onEvent: (event: ProxyEvent) => void,
): Promise<void> {
  const fencingToken = fencingTokenOf(req.headers)
  const lockKey = header(req, 'X-Lock-Key', checkKey)
  const ownerId = header(req, 'X-Owner-Id', checkOwnerId)
  const idempotencyKey = header(req, 'X-Idempotency-Key', checkText)
  const submission = { lockKey, fencingToken, ownerId, idempotencyKey, request }
  const submitted = await guard.submit(submission)
  onEvent({ traceId, ownerId, ...eventOf(submitted, lockKey, fencingToken, ownerId) })
  if ('reply' in submitted) handBack(res, submitted.reply)
  else sendAnswer(res, answerOf(submitted, lockKey, ownerId, traceId))
}

type Unanswered = Exclude<Submitted<Reply>, { readonly reply: Reply }>

function answerOf(
  submitted: Unanswered,
  lockKey: string,
  ownerId: string,
  traceId: string,
): Answer {
  switch (submitted.kind) {
    case 'fenced-out':
      return fencedOutAnswer(submitted.refused, resource(lockKey), ownerId, traceId)
    case 'duplicate':
      return answer(
        'DUPLICATE_SUBMISSION',
        'this idempotency key has an attempt already; it is never forwarded again',
        traceId,
        { earlier: spell(submitted.earlier) },
      )
    case 'not-presented':
      return answer('RAIL_UNAVAILABLE', `nothing was presented: ${submitted.why}`, traceId)
    case 'unknown':
      return answer('RAIL_AMBIGUOUS', `the outcome is unknown: ${submitted.why}`, traceId)
  }
}

function eventOf(
  submitted: Submitted<Reply>,
  lockKey: string,
  fencingToken: bigint,
  ownerId: string,
): Pick<ProxyEvent, 'event' | 'details'> {
  const token = fencingToken.toString()
  switch (submitted.kind) {
    case 'fenced-out':
      return {
        event: 'fenced_out',
        details: { ...fencedOutDetails(submitted.refused, resource(lockKey), ownerId) },
      }
    case 'duplicate':
      return {
        event: 'duplicate_submission_attempted',
        details: { token, earlierAttemptId: submitted.earlier.attemptId },
      }
    case 'not-presented':
      return { event: 'not_presented', details: { token, why: submitted.why } }
    case 'acked':
    case 'rejected':
    case 'unknown':
      return {
        event: 'forwarded',
        details: { token, attemptId: submitted.attemptId, outcome: submitted.kind },
      }
  }
}

async function ownPath(
  req: IncomingMessage,
  { method, body }: Presentation,
  guard: ForwardOnce<Presentation, Reply>,
  traceId: string,
): Promise<Answer | object> {
  const { pathname, searchParams } = new URL(req.url ?? '', 'http://proxy')
  if (method === 'GET' && pathname === `${OWN}livez`) return { status: 'ok' }
  if (method === 'GET' && pathname === `${OWN}readyz`) {
    await guard.attempts('-')
    return { status: 'ok' }
  }
  if (method === 'GET' && pathname === `${OWN}attempts`) {
    const key = checkText(searchParams.get('idempotencyKey') ?? '', 'idempotencyKey')
    return { attempts: (await guard.attempts(key)).map(spell) }
  }
  const lockKey = /^\/-\/fences\/([^/]+)\/advance$/.exec(pathname)?.[1]
  if (method === 'POST' && lockKey !== undefined) {
    const { floor } = (JSON.parse(Buffer.from(body).toString() || '{}') ?? {}) as {
      floor?: unknown
    }
    const parsed = typeof floor === 'string' ? parseFencingToken(floor) : undefined
    if (parsed === undefined) throw new RangeError('floor must be a token, spelled as a string')
    return { fence: (await guard.advance(decodeURIComponent(lockKey), parsed)).toString() }
  }
  return answer('NOT_FOUND', `no such path: ${method} ${pathname}`, traceId)
}

/** Bad input is the caller's, and named; anything else is not, and stays unnamed. */
function refusalOf(error: unknown, traceId: string): Answer {
  if (error instanceof InvalidFencingTokenError) return invalidTokenAnswer(error, traceId)
  if (error instanceof BodyTooLargeError) return answer('BODY_TOO_LARGE', error.message, traceId)
  if (error instanceof RangeError || error instanceof SyntaxError || error instanceof URIError) {
    return answer('VALIDATION_FAILED', error.message, traceId)
  }
  return answer('STORE_UNAVAILABLE', 'the proxy could not reach its database', traceId)
}

class BodyTooLargeError extends Error {}

async function presentationOf(
  req: IncomingMessage,
  { upstream, maxBodyBytes = DEFAULT_MAX_BODY_BYTES }: FencingProxyOptions,
): Promise<Presentation> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of req as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBodyBytes)
      throw new BodyTooLargeError(`a body of more than ${maxBodyBytes} bytes`)
    chunks.push(chunk)
  }
  // Not resolved against the upstream as a URL: "//elsewhere/x" would then choose the host.
  const url = new URL(upstream)
  const [path = '/', query] = (req.url ?? '/').split(/\?(.*)/s)
  url.pathname = upstream.pathname.replace(/\/$/, '') + path
  url.search = query ?? ''
  return {
    url,
    method: req.method ?? 'GET',
    headers: endToEnd(req.headers),
    body: Buffer.concat(chunks),
  }
}

/** Of one connection, not of the message: never passed on. */
const HOP_BY_HOP = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

function endToEnd(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers).filter(
      (entry): entry is [string, string | string[]] =>
        entry[1] !== undefined && !HOP_BY_HOP.has(entry[0]),
    ),
  )
}

function judge(presented: Awaited<ReturnType<typeof presentOnce>>): Forwarded<Reply> {
  if (presented.kind !== 'answered') return presented
  const { reply } = presented
  const { status } = reply
  if (status >= 200 && status < 300) return { kind: 'acked', reply }
  if (status >= 400 && status < 500 && !UNDECIDED.has(status)) return { kind: 'rejected', reply }
  return { kind: 'unknown', why: `status ${status} proves neither effect nor refusal` }
}

const UNDECIDED = new Set([408, 425, 429])

function handBack(res: ServerResponse, reply: Reply): void {
  res.writeHead(reply.status, endToEnd(reply.headers))
  res.end(reply.body)
}

function send(res: ServerResponse, result: Answer | object): void {
  if ('body' in result && 'status' in result) sendAnswer(res, result as Answer)
  else {
    res.setHeader('content-type', 'application/json; charset=utf-8')
    res.end(JSON.stringify(result))
  }
}

function header<T>(
  req: IncomingMessage,
  name: string,
  check: (text: string, field: string) => T,
): T {
  // Node would join a repeated one with a comma, and "k, k" is a lock key with a fence of its own.
  const [value, ...more] = req.headersDistinct[name.toLowerCase()] ?? []
  if (value === undefined || more.length > 0) {
    throw new RangeError(`${name} is required exactly once on a guarded request`)
  }
  return check(Buffer.from(value, 'latin1').toString('utf8'), name)
}

function resource(lockKey: string): { resourceType: string; resourceId: string } {
  return { resourceType: 'proxy', resourceId: lockKey }
}

/** An attempt as JSON: tokens as strings. */
function spell(attempt: Attempt): object {
  return { ...attempt, fencingToken: attempt.fencingToken.toString() }
}
