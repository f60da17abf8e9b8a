/**
 * What an application holds: a client, its sessions, and the locks on them, with the same behaviour
 * over a service in this process, over HTTP, and over one multiplexed connection.
 *
 * **Who is authoritative.** The service, for who holds a key. This process, for when it stops to
 * believe that it does: it has to stop early enough by itself, because the news of a loss may never
 * come. And neither of them for whether a write may land: that is the resource's guard, which
 * refuses a token below the highest it has seen. Everything here is liveness; the token is safety,
 * and travels as an explicit argument (`fencing-token.ts`).
 *
 * **Deadlines** (`deadline.ts`). A lease counts from just before its request left, for the granted
 * length × (1 − margin): never from the answer's arrival, never by a wall clock, and a machine that
 * slept has used its lease up meanwhile. A lock is good until the earlier one of its own deadline
 * and its session's, since a dead session frees every lock at once. Only a renewal that was granted
 * moves a deadline, and by when *it* left.
 *
 * ```text
 *   sent      granted                                    deadline              lease over at
 *    │  way    │                                             │ margin: time to    the service
 *    ├─────────┼─────────────── believed ────────────────────┤ stop ──────────────────┤ way
 * ```
 *
 * **A held lock** (`held-lock.ts`, `held-locks.ts`):
 *
 * ```text
 *            release(), using/hold over
 *   held ─────────────────────────────────▶ released     no renewal, no loss from the call on
 *     │  deadline passed · service says gone · session dead · held for the maximum
 *     └───────────────────────────────────▶ lost         final: handle throws, `lost` aborts,
 *                                                        listeners are called, once
 * ```
 *
 * What is uncertain changes nothing: a heartbeat that failed is tried again, and the deadline
 * stands (`heartbeat.ts`). A release that got no answer has left the lock; its grant may outlive it
 * until the lease ends.
 *
 * **An acquire** (`acquire-call.ts`) is one task's turn at a key (`acquire-queue.ts`), and as many
 * requests as it takes under one deadline. Asking again is harmless, as the session gets the same
 * grant again; so it is also how an unknown outcome is resolved.
 *
 * **Transports** (`transport.ts`): `in-process.ts`; `wire.ts` over the channels `http.ts`,
 * `websocket.ts` and `auto.ts`. The time-outs are one table, `hops.ts`.
 *
 * @packageDocumentation
 */
export type { AcquireOptions } from './acquire-options.ts'
export { LeaseTooShortError, LockNotGrantedError } from './client-errors.ts'
export type { HttpCall, HttpClient, HttpResponse } from './http-connections.ts'
export type { LocalService } from './in-process.ts'
export {
  type ClientOptions,
  type InProcessOptions,
  LockClient,
  type LockClientOptions,
} from './lock-client.ts'
export type { Hold, LockClientSession, UsingResult } from './lock-client-session.ts'
export type { LockLostListener } from './losses.ts'
export type { RemoteOptions } from './remote.ts'
export type { Background, ReportHooks } from './reports.ts'
export type { OpenSocket, Socket, SocketListener } from './socket.ts'
export type { RevokeOutcome } from './transport.ts'
