import type { Ids } from '@dlock/system'
import {
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'

/** What ties a step's log lines, its span and the calls it makes together. */
export interface Trace {
  /** 32 and 16 hexadecimal digits: for the log, with or without an exporter. */
  readonly traceId: string
  readonly spanId: string
  /** For the calls that this step makes. */
  readonly traceparent: string
  /** `failed`: with which code. Without it, it went well. */
  end(failed?: string): void
}

export type SpanName = 'payment.claim' | 'rail.submit' | 'ledger.post' | 'payout.execute'

/**
 * Begins a step of the trace that `traceparent` names, or of a new one. The OpenTelemetry API does
 * nothing until a process registers a provider; the ids are made here then. Every span has
 * `lock.token`, so that one token tells the story of one grant across processes.
 */
export function beginTrace(
  ids: Ids,
  options: {
    readonly name?: SpanName | undefined
    readonly traceparent?: string | undefined
    readonly token?: string | undefined
  } = {},
): Trace {
  const [, callerTrace, callerSpan] = TRACEPARENT.exec(options.traceparent ?? '') ?? []
  const span = startSpan(options, callerTrace, callerSpan)
  const own = span?.spanContext()
  const recorded = own !== undefined && isSpanContextValid(own) && own.spanId !== callerSpan
  const hex = (): string => ids.uuid().replaceAll('-', '')
  const traceId = recorded ? own.traceId : (callerTrace ?? hex())
  const spanId = recorded ? own.spanId : hex().slice(-16)
  return {
    traceId,
    spanId,
    traceparent: `00-${traceId}-${spanId}-01`,
    end: (failed) => {
      if (failed !== undefined) span?.setStatus({ code: SpanStatusCode.ERROR, message: failed })
      span?.end()
    },
  }
}

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}/

function startSpan(
  { name, token }: { readonly name?: SpanName | undefined; readonly token?: string | undefined },
  traceId: string | undefined,
  spanId: string | undefined,
): Span | undefined {
  if (name === undefined) return undefined
  const parent =
    traceId === undefined || spanId === undefined
      ? ROOT_CONTEXT
      : trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: 1, isRemote: true })
  const attributes = token === undefined ? {} : { 'lock.token': token }
  return trace.getTracer('@dlock/payouts').startSpan(name, { attributes }, parent)
}
