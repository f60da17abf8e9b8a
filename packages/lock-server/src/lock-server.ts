import type { AddressInfo } from 'node:net'
import type { LockEngine, LockEvent } from '@dlock/engine'
import { MAX_TTL_MS } from '@dlock/lock-api'
import {
  DEFAULT_LOCK_TTL_MS,
  DEFAULT_MAX_LOCK_TTL_MS,
  DEFAULT_SESSION_TTL_MS,
  formatFencingToken,
  MAX_SESSION_TTL_MS,
  MIN_SESSION_TTL_MS,
} from '@dlock/protocol'
import { type Clock, type Ids, systemClock, systemIds } from '@dlock/system'
import type { Logger } from 'pino'
import { Calls } from './calls.ts'
import { EventStream } from './event-stream.ts'
import { type Desk, type Leases, shuttingDown } from './handlers.ts'
import { createHttpServer, refuseOtherMethods, serveCalls } from './http-server.ts'
import { type Authenticate, anonymousOperator } from './identity.ts'
import { lockHandlers } from './lock-handlers.ts'
import type { LockMetrics } from './lock-metrics.ts'
import { createLog, logEvent } from './log.ts'
import { operatorHandlers } from './operator-handlers.ts'
import { sessionHandlers } from './session-handlers.ts'
import { serveSideRoutes } from './side-routes.ts'
import { tokenCounterHandlers } from './token-counter-handlers.ts'
import { Tracing } from './tracing.ts'
import { Upgrades } from './upgrade.ts'

/** What a server is made of. Engine and metrics stay the caller's to close. */
export interface LockServerOptions {
  /** Started, with a `maxWaitMs` of at least 30 000. */
  readonly engine: LockEngine
  /** The one that the engine has as its meter. */
  readonly metrics: LockMetrics
  /** Default: everybody is an anonymous operator, which `listen` allows on loopback only. */
  readonly authenticate?: Authenticate
  /** Default: `createLog()`. */
  readonly log?: Logger
  /** A session's lease when none is asked for; 15 000 ms unless given, from 1 000 to 60 000. */
  readonly defaultSessionTtlMs?: number
  /** A lock's lease when none is asked for; 30 000 ms unless given. */
  readonly defaultLockTtlMs?: number
  /**
   * The longest lease of a lock, and of a session if that is below 60 000: the engine's `maxTtlMs`,
   * an hour for both unless given; from 1 000 ms.
   */
  readonly maxLockTtlMs?: number
  /** How long a request's headers may take to arrive; 5 000 ms unless given. */
  readonly headersTimeoutMs?: number
  /** How long a whole request may take to arrive; 10 000 ms unless given. */
  readonly requestTimeoutMs?: number
  readonly clock?: Clock
  readonly ids?: Ids
}

/** Where to listen. */
export interface ListenOptions {
  /** Default: "127.0.0.1". */
  readonly host?: string
  /** Default: 7400; 0: any that is free. */
  readonly port?: number
  /** Says aloud that anybody who reaches the port may do everything. */
  readonly insecure?: boolean
}

/** Where a server listens. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
  /** What a client is given. */
  readonly url: string
}

/** A server, from before it listens until it is closed. */
export interface LockServer {
  /**
   * @throws Error when the host is not loopback, nobody is authenticated, and `insecure` was not
   *   said; or when the port cannot be had
   */
  listen(options?: ListenOptions): Promise<ListenAddress>

  /**
   * Stops accepting, fails `/readyz`, ends waits and refuses new grants with `NOT_LEADER`, lets
   * what is in flight finish, and cuts off what is left after `withinMs` (10 000 unless given).
   * Idempotent. Sessions and grants live on in the store.
   */
  close(options?: { readonly withinMs?: number }): Promise<void>
}

/** The lock service over HTTP and the multiplexed connection, not yet listening. */
export function createLockServer(options: LockServerOptions): LockServer {
  const { engine, metrics, clock = systemClock, log = createLog({ clock }) } = options
  const authenticate = options.authenticate ?? (async () => anonymousOperator)
  let closing: Promise<void> | undefined
  const isClosing = (): boolean => closing !== undefined

  const desk: Desk = { engine, clock, log, leases: leasesOf(options), isClosing }
  const handlers = {
    ...sessionHandlers(desk),
    ...lockHandlers(desk),
    ...operatorHandlers(desk),
    ...tokenCounterHandlers(desk),
  }
  const calls = new Calls(handlers, new Tracing(options.ids ?? systemIds), log)
  const events = new EventStream(engine, clock)
  const upgrades = new Upgrades(calls, authenticate, clock)
  const parts = {
    calls,
    authenticate,
    headersTimeoutMs: options.headersTimeoutMs ?? 5_000,
    requestTimeoutMs: options.requestTimeoutMs ?? 10_000,
  }
  const app = createHttpServer(parts)
  const routes = new Map<string, string[]>()
  app.addHook('onRoute', ({ url, method }) => {
    routes.set(url, [...(routes.get(url) ?? []), ...[method].flat()])
  })
  serveCalls(app, parts)
  serveSideRoutes(app, { engine, metrics, events, authenticate, isClosing })
  refuseOtherMethods(app, new Map(routes))
  upgrades.listenTo(app.server)
  const stopWatching = [metrics.watch(engine), engine.onEvent((event) => logUnasked(log, event))]

  async function close(withinMs: number): Promise<void> {
    calls.endWaits(shuttingDown())
    events.close()
    upgrades.drain()
    const cutOff = clock.setTimer(
      withinMs,
      () => {
        upgrades.terminate()
        app.server.closeAllConnections()
      },
      { keepAlive: true },
    )
    await app.close()
    cutOff.cancel()
    for (const stop of stopWatching) stop()
    logEvent(log, 'server_closed', {})
  }

  return {
    async listen({ host = '127.0.0.1', port = 7_400, insecure = false } = {}) {
      checkHost(host, insecure || options.authenticate !== undefined)
      await app.listen({ host, port })
      const bound = app.server.address() as AddressInfo
      const shown = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address
      const address = { host, port: bound.port, url: `http://${shown}:${bound.port}` }
      logEvent(log, 'server_listening', address)
      return address
    },
    close({ withinMs = 10_000 } = {}) {
      closing ??= close(withinMs)
      return closing
    },
  }
}

/** @throws RangeError that names the option, its value and its range */
function leasesOf(options: LockServerOptions): Leases {
  const {
    maxLockTtlMs = DEFAULT_MAX_LOCK_TTL_MS,
    defaultLockTtlMs = DEFAULT_LOCK_TTL_MS,
    defaultSessionTtlMs = DEFAULT_SESSION_TTL_MS,
  } = options
  const maxSessionTtlMs = Math.min(MAX_SESSION_TTL_MS, maxLockTtlMs)
  checkWhole('maxLockTtlMs', maxLockTtlMs, MIN_SESSION_TTL_MS, MAX_TTL_MS)
  checkWhole('defaultLockTtlMs', defaultLockTtlMs, 1, maxLockTtlMs)
  checkWhole('defaultSessionTtlMs', defaultSessionTtlMs, MIN_SESSION_TTL_MS, maxSessionTtlMs)
  return { maxLockTtlMs, defaultLockTtlMs, defaultSessionTtlMs }
}

function checkWhole(option: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return
  throw new RangeError(`${option} must be a whole number from ${min} to ${max}, got ${value}`)
}

/** Open to the network and to everybody is a decision that somebody has to take in so many words. */
function checkHost(host: string, isSettled: boolean): void {
  const isLoopback = /^(127(\.\d{1,3}){3}|::1|localhost)$/.test(host)
  if (isLoopback || isSettled) return
  throw new Error(
    `refusing to listen on ${JSON.stringify(host)}: it is not a loopback address, and without authentication anybody who reaches it could take and revoke every lock. Listen on 127.0.0.1, configure authentication, or say insecure`,
  )
}

/** What no call asked for, so that no call logs it. */
function logUnasked(log: Logger, event: LockEvent): void {
  switch (event.type) {
    case 'lease_expired': {
      const { type, key, ownerId } = event
      const fencingToken = formatFencingToken(event.fencingToken)
      logEvent(log, type, { ownerId, key, fencingToken })
      break
    }
    case 'session_expired':
      logEvent(log, event.type, { ownerId: event.ownerId })
      break
    case 'token_regression':
      logEvent(log, event.type, {
        key: event.key,
        fencingToken: formatFencingToken(event.fencingToken),
        highestSeen: formatFencingToken(event.highestSeen),
      })
      break
    case 'lock_granted':
    case 'lock_contended':
    case 'lock_released':
    case 'lock_revoked':
    case 'session_opened':
    case 'session_closed':
      break
  }
}
