import {
  EVENTS_PATH,
  errorEnvelope,
  errorOf,
  type Operation,
  OWNER_ID_HEADER,
  type PageInput,
  type PageOf,
  toHttpRequest,
  type WireEvent,
  wireEvent,
} from '@dlock/protocol'
import { CommandFailure, exitCodes } from './exit-codes.ts'

/** What the operators' calls are made as. It only appears in the server's log. */
const CALLER = 'dlock-cli'
const ANSWER_WITHIN_MS = 10_000

/** A lock server, for the calls that need no session. */
export class Service {
  readonly url: URL

  constructor(url: URL) {
    this.url = url
  }

  /**
   * @throws CommandFailure when nobody answers, or not like a lock service
   * @throws the error of the contract that a refusal means
   */
  async call<Input extends object, Output>(
    operation: Operation<Input, Output>,
    input: Input,
  ): Promise<Output> {
    const { method, path, headers, body } = toHttpRequest(operation, input)
    const response = await this.#fetch(path, {
      method,
      headers: { ...headers, [OWNER_ID_HEADER]: CALLER },
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      ...(body !== undefined && { body }),
    })
    const answer: unknown = await response.json().catch(() => undefined)
    if (response.status === operation.status && operation.output.accepts(answer)) return answer
    throw this.#refusal(response, answer)
  }

  /** Every item of a listing, page after page. */
  async *list<Input extends PageInput, Item>(
    operation: Operation<Input, PageOf<Item>>,
    input: Input,
  ): AsyncGenerator<Item> {
    let cursor: string | undefined
    do {
      const page = await this.call(operation, { ...input, ...(cursor !== undefined && { cursor }) })
      yield* page.items
      cursor = page.nextCursor
    } while (cursor !== undefined)
  }

  /** What happens on this server from now on, until it ends the stream or `signal` aborts. */
  async *events(signal: AbortSignal): AsyncGenerator<WireEvent> {
    const response = await this.#fetch(EVENTS_PATH, { signal })
    if (!response.ok || response.body === null) {
      throw this.#refusal(response, await response.json().catch(() => undefined))
    }
    let unread = ''
    for await (const text of textOf(response.body, this.url)) {
      const lines = (unread + text).split('\n')
      unread = lines.pop() ?? ''
      for (const line of lines) {
        const event: unknown = line.startsWith('data: ') ? JSON.parse(line.slice(6)) : undefined
        if (wireEvent.accepts(event)) yield event
      }
    }
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    const base = this.url.href.replace(/\/$/, '')
    try {
      return await fetch(base + path, init)
    } catch {
      if (init.signal?.aborted && init.signal.reason instanceof Error) {
        throw new CommandFailure(exitCodes.unavailable, `${base} did not answer in time`)
      }
      throw unreachable(base)
    }
  }

  #refusal(response: Response, answer: unknown): Error {
    if (errorEnvelope.accepts(answer)) return errorOf(answer)
    return new CommandFailure(
      exitCodes.failed,
      `${this.url.origin} answered ${response.status}, and not as a lock service does: is it the right address?`,
    )
  }
}

async function* textOf(body: ReadableStream<Uint8Array>, url: URL): AsyncGenerator<string> {
  try {
    yield* body.pipeThrough(new TextDecoderStream())
  } catch {
    throw new CommandFailure(exitCodes.unavailable, `the connection to ${url.origin} was lost`)
  }
}

/** Nobody is there. */
export function unreachable(url: string): CommandFailure {
  return new CommandFailure(
    exitCodes.unavailable,
    `no lock service answers at ${url}. Is lockd running? "npm start" starts one here; --url or DLOCK_URL names another`,
  )
}
