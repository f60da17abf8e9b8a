import { checkOwnerId } from '@dlock/lock-api'
import {
  type ErrorEnvelope,
  envelopeOf,
  Failure,
  type FieldFault,
  failureOf,
  listings,
  type Operation,
  operations,
  tokenCounterOperations,
} from '@dlock/protocol'
import type { Logger } from 'pino'
import type { Call, CallContext, SpelledCall } from './call.ts'
import type { CallName, CallTable, Handler, Handlers } from './handlers.ts'
import { mayAct } from './identity.ts'
import { invalid } from './invalid.ts'
import { type LogEventName, logEvent } from './log.ts'
import { endSpan, type Trace, type Tracing } from './tracing.ts'

export const callTable: CallTable = {
  ...operations,
  ...listings,
  ...tokenCounterOperations,
}

export type Outcome =
  | { readonly ok: true; readonly output: unknown }
  | { readonly ok: false; readonly failure: Failure; readonly envelope: ErrorEnvelope }

/**
 * Where every call comes through, whatever it was spelled in: the same checks in the same order,
 * the same handler, and the one place where a failure becomes an envelope.
 */
export class Calls {
  readonly #handlers: Handlers
  readonly #tracing: Tracing
  readonly #log: Logger
  readonly #inFlight = new Set<Call>()

  constructor(handlers: Handlers, tracing: Tracing, log: Logger) {
    this.#handlers = handlers
    this.#tracing = tracing
    this.#log = log
  }

  async run(name: CallName, call: Call): Promise<Outcome> {
    const operation = callTable[name] as Operation<unknown, unknown>
    const handler = this.#handlers[name] as Handler<unknown, unknown>
    const { spelled } = call
    const trace = this.#tracing.begin(handler.span, spelled.traceparent)
    this.#inFlight.add(call)
    try {
      const context = checked(operation, handler, call, trace)
      const output = await handler.answer(context, spelled.input)
      endSpan(trace, undefined)
      return { ok: true, output }
    } catch (error) {
      const failure = failureOf(error)
      endSpan(trace, failure.code)
      const about = { operation: name, ownerId: spelled.ownerId }
      return { ok: false, failure, envelope: this.#envelope(error, trace, operation, about) }
    } finally {
      this.#inFlight.delete(call)
    }
  }

  /** The answer to what never became a call: no route, no JSON, no room. */
  refuse(error: unknown, traceparent: string | undefined): ErrorEnvelope {
    return this.#envelope(error, this.#tracing.begin(undefined, traceparent), undefined, {})
  }

  /** Ends every wait, for a reason that is its answer. */
  endWaits(why: Failure): void {
    for (const call of this.#inFlight) if (call.isWaiting) call.abandon(why)
  }

  #envelope(
    error: unknown,
    trace: Trace,
    operation: Operation<unknown, unknown> | undefined,
    about: object,
  ): ErrorEnvelope {
    const failure = failureOf(error)
    const { traceId, spanId } = trace
    const { code, message } = failure
    logEvent(this.#log, eventOf(failure), {
      traceId,
      spanId,
      ...about,
      code,
      message,
      // A bug's own words stay here; the caller gets the trace id to ask about.
      ...(code === 'INTERNAL' && { error: error instanceof Error ? error.stack : String(error) }),
    })
    return envelopeOf(failure, { traceId, repeatable: operation?.repeatable ?? false })
  }
}

function checked(
  operation: Operation<unknown, unknown>,
  handler: Handler<unknown, unknown>,
  call: Call,
  trace: Trace,
): CallContext {
  const { spelled } = call
  const { identity } = spelled
  if (!mayAct(identity, handler.role)) {
    throw new Failure('FORBIDDEN', `this needs the role ${handler.role}, not ${identity.role}`)
  }
  const faults = [...ownerFaults(operation, spelled), ...operation.input.faults(spelled.input)]
  if (faults.length > 0) throw invalid(faults)
  return { call, ownerId: spelled.ownerId ?? '', identity, trace }
}

function ownerFaults(
  { write }: Operation<unknown, unknown>,
  { ownerId }: SpelledCall,
): FieldFault[] {
  const field = 'X-Owner-Id'
  if (ownerId === undefined) return write ? [{ field, message: 'is required' }] : []
  try {
    checkOwnerId(ownerId, field)
    return []
  } catch (error) {
    return [{ field, message: (error as Error).message.replace(`${field} `, '') }]
  }
}

const events: Partial<Record<Failure['code'], LogEventName>> = {
  LOCK_CONTENDED: 'lock_contended',
  LOCK_LOST: 'lock_lost',
  NOT_LEADER: 'store_unavailable',
  STORE_UNAVAILABLE: 'store_unavailable',
  INTERNAL: 'internal_error',
}

function eventOf({ code }: Failure): LogEventName {
  return events[code] ?? 'call_refused'
}
