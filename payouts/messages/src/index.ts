/**
 * What the payout services have in common: the life of a payout (`payout-state.ts`), what they say
 * to each other (`payment-messages.ts`, `rail-messages.ts`), and the frame that each of them stands
 * in (settings, log, service, migrations). Nothing here decides about money; the guards do.
 *
 * @packageDocumentation
 */
export { type Answered, type CallOptions, call } from './call.ts'
export type { Fenced, Signed } from './fields.ts'
export { createLog } from './log.ts'
export { migrate, openPool } from './migrations.ts'
export * from './payment-messages.ts'
export * from './payout-state.ts'
export { runProgram } from './program.ts'
export * from './rail-messages.ts'
export {
  type CallContext,
  clockOf,
  invalid,
  type RunningService,
  Service,
  type ServiceParts,
} from './service.ts'
export * as kinds from './settings.ts'
export { readSettings, type Setting, type Settings } from './settings.ts'
export { beginTrace, type SpanName, type Trace } from './tracing.ts'
