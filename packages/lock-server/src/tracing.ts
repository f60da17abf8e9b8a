import { type ErrorCode, errorTable } from '@dlock/protocol'
import type { Ids } from '@dlock/system'
import {
  type Context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'

/** What ties a call's answer, its log lines and its span together. */
export interface Trace {
  /** 32 hexadecimal digits: the caller's, when it sent a `traceparent`. */
  readonly traceId: string
  /** 16 hexadecimal digits: this call's own. */
  readonly spanId: string
  /** Only the three calls that make, keep and end a grant have one. */
  readonly span: Span | undefined
}

/**
 * Trace ids, with or without an exporter. The OpenTelemetry API does nothing until the process
 * registers a provider; ids are made here then, so that an envelope's trace id always finds its
 * log lines.
 */
export class Tracing {
  readonly #tracer: Tracer = trace.getTracer('@dlock/lock-server')
  readonly #ids: Ids

  constructor(ids: Ids) {
    this.#ids = ids
  }

  begin(spanName: string | undefined, traceparent: string | undefined): Trace {
    const caller = parseTraceparent(traceparent)
    const span = spanName === undefined ? undefined : this.#startSpan(spanName, caller)
    const recorded = span?.spanContext()
    // Without a provider the span is a stand-in that repeats the caller's context.
    if (recorded !== undefined && isOwn(recorded, caller)) return { ...idsOf(recorded), span }
    const digits = this.#ids.uuid().replaceAll('-', '')
    return { traceId: caller?.traceId ?? digits, spanId: digits.slice(-16), span }
  }

  #startSpan(name: string, caller: SpanContext | undefined): Span {
    const parent: Context =
      caller === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, caller)
    return this.#tracer.startSpan(name, { kind: SpanKind.SERVER }, parent)
  }
}

/** Ends the call's span, if it has one. A refusal is an outcome; only a 5xx is an error. */
export function endSpan({ span }: Trace, failed: ErrorCode | undefined): void {
  if (span === undefined) return
  if (failed !== undefined) span.setAttribute('lock.refusal', failed)
  if (failed !== undefined && errorTable[failed].status >= 500) {
    span.setStatus({ code: SpanStatusCode.ERROR, message: failed })
  }
  span.end()
}

function isOwn(recorded: SpanContext, caller: SpanContext | undefined): boolean {
  return isSpanContextValid(recorded) && recorded.spanId !== caller?.spanId
}

function idsOf({ traceId, spanId }: SpanContext): { traceId: string; spanId: string } {
  return { traceId, spanId }
}

/** W3C Trace Context, level 1. What is malformed is ignored, as the standard asks. */
function parseTraceparent(text: string | undefined): SpanContext | undefined {
  const match = TRACEPARENT.exec(text ?? '')
  const [, version, traceId = '', spanId = '', flags = '', more] = match ?? []
  if (match === null || (version === '00' && more !== undefined)) return undefined
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  return isSpanContextValid(context) ? context : undefined
}

const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
