/**
 * The lock service on the network, over an engine: `createLockServer({ engine, metrics })`.
 *
 * There is one table of calls (`@dlock/protocol`), one handler for each, and one place, `Calls`,
 * that every call comes through: it checks who calls and what they say, runs the handler, and turns
 * what was thrown into the error envelope. HTTP and the multiplexed WebSocket connection are two
 * thin adapters over it, so that schemas, errors, limits and the rules for callers that go away
 * are the same on both.
 *
 * The server holds no truth. Sessions, grants and tokens are the store's; what is remembered here
 * (a session's owner and usual lease, who waits) may be lost at any time at the price of a read.
 *
 * A caller that goes away ends its wait: the engine takes it out of the queue and releases what it
 * had just been granted. Shutting down is the same thing said politely.
 *
 * @packageDocumentation
 */
export type { Authenticate, Identity, Role } from './identity.ts'
export { LockMetrics } from './lock-metrics.ts'
export {
  createLockServer,
  type ListenAddress,
  type ListenOptions,
  type LockServer,
  type LockServerOptions,
} from './lock-server.ts'
export { createLog, type LogOptions } from './log.ts'
