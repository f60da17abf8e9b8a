import {
  capabilitiesOf,
  grantedTtlMs,
  type LockHandle,
  type StoreCapabilities,
} from '@dlock/lock-api'
import { AbortFanOut } from './abort-fan-out.ts'
import { Acquire } from './acquire.ts'
import { Bookkeeping } from './bookkeeping.ts'
import { nanosOf } from './durations.ts'
import { type EngineOptions, type Settings, settingsFrom } from './engine-options.ts'
import { Events } from './events.ts'
import { Granting } from './fencing-token.ts'
import { Grants } from './grants.ts'
import { HandOff } from './hand-off.ts'
import { Renewal } from './renewal.ts'
import { Sessions } from './sessions.ts'
import { Sweeper } from './sweeper.ts'
import { TokenGuard, type TokenRegression } from './token-guard.ts'
import { WaitQueues } from './wait-queues.ts'

export interface EngineParts {
  readonly settings: Settings
  readonly capabilities: StoreCapabilities
  readonly events: Events
  readonly grants: Grants
  readonly bookkeeping: Bookkeeping
  readonly guard: TokenGuard
  readonly sessions: Sessions
  readonly queues: WaitQueues
  readonly handOff: HandOff
  readonly acquire: Acquire
  readonly renewal: Renewal
  readonly sweeper: Sweeper
}

/** Makes an engine's parts and ties them together; the arrows between them are all here. */
export function engineParts(options: EngineOptions): EngineParts {
  const settings = settingsFrom(options)
  const { store } = options
  const capabilities = capabilitiesOf(store)
  const { transfer, waiting, queue: line, ttlBounds, tokens, sessions: describing } = capabilities
  const maxLatenessMs = ttlBounds?.maxLatenessMs ?? 0
  const lease = new LeaseTimes(settings.safetyMargin, (ttlMs) => grantedTtlMs(ttlMs, ttlBounds))
  const shared = { ...settings, store, registry: store, maxLatenessMs, waiting, line, transfer }

  const events = new Events()
  const grants = new Grants()
  const bookkeeping = new Bookkeeping({
    ...shared,
    grants,
    events,
    leaseEndNanos: lease.endNanos,
    onFreed: (key) => queues.find(key)?.freed(),
  })
  const sessions = new Sessions({
    ...shared,
    describing,
    events,
    grantedTtlMs: lease.grantedTtlMs,
    onEnd: (sessionId, how) => bookkeeping.sessionEnded(sessionId, how),
  })
  const stop = (regression: TokenRegression): void => {
    events.emit({ type: 'token_regression', at: settings.clock.now(), ...regression })
    queues.refuseAll(guard.stopped)
  }
  const guard = new TokenGuard(tokens, stop)
  const abandon = (handle: LockHandle): Promise<void> => handOff.abandon(handle)
  const granting = new Granting({
    ...shared,
    guard,
    deadlineNanos: lease.deadlineNanos,
    onSessionDead: (sessionId, error) => sessions.ended(sessionId, 'expired', error),
    abandon,
  })
  const queues = new WaitQueues({
    ...shared,
    granting,
    alarms: { clock: settings.clock, aborts: new AbortFanOut(), sessions },
    handOut: (handle, { request, sinceNanos }) =>
      bookkeeping.handedOut(handle, request, sinceNanos),
    abandon,
  })
  const handOff = new HandOff({
    ...shared,
    granting,
    grants,
    queueOf: (key) => queues.find(key),
    onGone: (key, token, released, ownerId) => bookkeeping.gone(key, token, released, ownerId),
  })
  const parts = { ...shared, granting, grants, bookkeeping, sessions, queues, events, guard }
  const acquire = new Acquire({ ...parts, abandon })
  const renewal = new Renewal({ ...parts, deadlineNanos: lease.deadlineNanos })
  const sweeper = new Sweeper({ ...parts, everyMs: settings.reapEveryMs })
  return { ...parts, settings, capabilities, handOff, acquire, renewal, sweeper }
}

/** When a lease ends for its holder, who keeps a margin, and for this process's book. */
class LeaseTimes {
  readonly grantedTtlMs: (ttlMs: number) => number
  readonly #margin: number

  constructor(margin: number, granted: (ttlMs: number) => number) {
    this.#margin = margin
    this.grantedTtlMs = granted
  }

  readonly deadlineNanos = (sentNanos: bigint, ttlMs: number): bigint =>
    sentNanos + nanosOf(this.grantedTtlMs(ttlMs) * (1 - this.#margin))

  readonly endNanos = (handle: LockHandle, ttlMs: number): bigint =>
    handle.clientDeadlineNanos + nanosOf(this.grantedTtlMs(ttlMs) * this.#margin)
}
