import { ContentionError } from '@dlock/lock-api'
import {
  errorEnvelope,
  formatHeaderText,
  type Operation,
  OWNER_ID_HEADER,
  operations,
  toHttpRequest,
} from '@dlock/protocol'
import type { Clock } from '@dlock/system'
import { answerWithin } from './answer-within.ts'
import type { Channel, WireAnswer, WireCall } from './channel.ts'
import type { HttpClient, HttpResponse } from './http-connections.ts'

/** One HTTP request per call. */
export class HttpChannel implements Channel {
  readonly #client: HttpClient
  readonly #clock: Clock

  constructor(client: HttpClient, clock: Clock) {
    this.#client = client
    this.#clock = clock
  }

  async call({ name, ownerId, input, hop, timeoutMs, signal }: WireCall): Promise<WireAnswer> {
    const operation = operations[name] as Operation<object, unknown>
    const { headers, ...request } = toHttpRequest(operation, input)
    // A request that is given up is cut off: that is how the server learns that nobody waits.
    const cut = new AbortController()
    const cutOff = (): void => cut.abort()
    const responding = this.#client.send({
      ...request,
      headers:
        ownerId === undefined
          ? headers
          : { ...headers, [OWNER_ID_HEADER]: formatHeaderText(ownerId) },
      connectTimeoutMs: hop.connectMs,
      signal: cut.signal,
    })
    const patience = {
      clock: this.#clock,
      timeoutMs,
      keepAlive: hop.awaited,
      giveUp: signal && { signal, graceMs: hop.readMs, onAbort: cutOff },
    }
    return answerOf(await answerWithin(responding, patience, cutOff))
  }

  close(): Promise<void> {
    this.#client.close()
    return Promise.resolve()
  }
}

function answerOf({ status, body }: HttpResponse): WireAnswer {
  if (status === 204) return { out: {} }
  const json = parsed(body)
  if (status >= 200 && status < 300 && json !== undefined) return { out: json }
  if (errorEnvelope.accepts(json)) return { error: json }
  throw new ContentionError(
    `HTTP ${status}, and not in the words of the lock service: the call may have happened`,
  )
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body) as unknown
  } catch {
    return undefined
  }
}
