import {
  type ClientRequest,
  type IncomingMessage,
  Agent as PlainAgent,
  type RequestOptions,
  request,
} from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import { urlToHttpOptions } from 'node:url'
import { ContentionError } from '@dlock/lock-api'
import type { Clock } from '@dlock/system'

/** One request, as a road over HTTP asks for it. */
export interface HttpCall {
  readonly method: string
  /** Sent as it is: `new URL`, and so `fetch`, would fold the keys "." and ".." away. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  readonly connectTimeoutMs: number
  /** Cuts the request off. */
  readonly signal: AbortSignal
}

/** What came back: the status, and the body as text. */
export interface HttpResponse {
  readonly status: number
  readonly body: string
}

/** How requests reach one server. The default is `HttpConnections`. */
export interface HttpClient {
  /** @throws ContentionError when there is no answer, for whatever reason */
  send(call: HttpCall): Promise<HttpResponse>
  close(): void
}

/**
 * Kept connections to one server, on Node's own client: of the ways to send a request it is the one
 * with a time-out for the connection alone. A connection that idles does not keep the process
 * alive, which is what Node's agent does by itself.
 */
export class HttpConnections implements HttpClient {
  readonly #server: RequestOptions
  readonly #pathPrefix: string
  readonly #isSecure: boolean
  readonly #clock: Clock
  readonly #agent: PlainAgent

  constructor(base: URL, clock: Clock) {
    this.#server = urlToHttpOptions(base)
    this.#pathPrefix = base.pathname.replace(/\/$/, '')
    this.#isSecure = base.protocol === 'https:'
    this.#clock = clock
    const options = { keepAlive: true, timeout: IDLE_MS }
    this.#agent = this.#isSecure ? new SecureAgent(options) : new PlainAgent(options)
  }

  async send(call: HttpCall): Promise<HttpResponse> {
    const sending = (this.#isSecure ? secureRequest : request)({
      ...this.#server,
      agent: this.#agent,
      method: call.method,
      path: this.#pathPrefix + call.path,
      headers: call.headers,
      signal: call.signal,
      timeout: 0,
    })
    try {
      this.#limitConnecting(sending, call.connectTimeoutMs)
      // As bytes: given a text, Node would spell the headers in the text's encoding too.
      sending.end(call.body === undefined ? undefined : Buffer.from(call.body))
      const response = await responseTo(sending)
      return { status: response.statusCode ?? 0, body: await textOf(response) }
    } catch (error) {
      // The system's own error would differ from road to road; its code is what people look for.
      const why = (error as NodeJS.ErrnoException).code ?? (error as Error).message
      throw new ContentionError(`no answer from the server (${why}): the call may have happened`)
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  #limitConnecting(sending: ClientRequest, timeoutMs: number): void {
    sending.once('socket', (socket) => {
      if (!socket.connecting) return
      const timer = this.#clock.setTimer(timeoutMs, () => {
        sending.destroy(new Error('no connection in time'))
      })
      socket.once(this.#isSecure ? 'secureConnect' : 'connect', () => timer.cancel())
      socket.once('close', () => timer.cancel())
    })
  }
}

/** Shorter than any server keeps one, so that no request is sent down one that is being closed. */
const IDLE_MS = 4_000

function responseTo(sending: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sending.once('response', resolve)
    sending.on('error', reject)
  })
}

function textOf(response: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    response.setEncoding('utf8')
    response.on('data', (chunk: string) => {
      text += chunk
    })
    response.once('end', () => resolve(text))
    response.on('error', reject)
  })
}
