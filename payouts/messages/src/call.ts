import { type ErrorEnvelope, errorEnvelope, type Operation, toHttpRequest } from '@dlock/protocol'

/**
 * The answer to a call of a service: what it gave, the refusal it named, or nothing usable. In the
 * last case, whether it happened is unknown, unless the connection was refused.
 */
export type Answered<Output> =
  | { readonly kind: 'ok'; readonly output: Output }
  | { readonly kind: 'refused'; readonly envelope: ErrorEnvelope }
  | { readonly kind: 'no-answer'; readonly why: string; readonly refusedConnection: boolean }

export interface CallOptions {
  readonly timeoutMs: number
  readonly traceparent?: string
  /** More tries on 503 and on a refused connection: on nothing else (see `http.md`). */
  readonly retries?: number
}

/** Calls one operation of the service at `base`. Never rejects. */
export async function call<Input extends object, Output>(
  base: string,
  operation: Operation<Input, Output>,
  input: Input,
  options: CallOptions,
): Promise<Answered<Output>> {
  const answered = await callOnce(base, operation, input, options)
  const again =
    (answered.kind === 'refused' && answered.envelope.code === 'STORE_UNAVAILABLE') ||
    (answered.kind === 'no-answer' && answered.refusedConnection)
  const retries = options.retries ?? 0
  if (!again || retries === 0) return answered
  return call(base, operation, input, { ...options, retries: retries - 1 })
}

async function callOnce<Input extends object, Output>(
  base: string,
  operation: Operation<Input, Output>,
  input: Input,
  { timeoutMs, traceparent }: CallOptions,
): Promise<Answered<Output>> {
  const { method, path, headers, body } = toHttpRequest(operation, input)
  try {
    const response = await fetch(base + path, {
      method,
      headers: { ...headers, ...(traceparent !== undefined && { traceparent }) },
      signal: AbortSignal.timeout(timeoutMs),
      ...(body !== undefined && { body }),
    })
    const answer: unknown = await response.json()
    if (response.ok) return { kind: 'ok', output: answer as Output }
    if (errorEnvelope.accepts(answer)) return { kind: 'refused', envelope: answer }
    return noAnswer(`status ${response.status} without the envelope`, false)
  } catch (error) {
    const { message, cause } = error as Error & { cause?: { code?: string } }
    return noAnswer(cause?.code ?? message, cause?.code === 'ECONNREFUSED')
  }
}

function noAnswer(why: string, refusedConnection: boolean): Answered<never> {
  return { kind: 'no-answer', why, refusedConnection }
}
