/**
 * What is allowed: one key's lock as one pure step function, with no clock, no network and no code
 * of the service. It is what `harness/check` compares recorded histories with, and short enough to
 * be read in full and believed: `step.ts`.
 *
 * **Who is authoritative.** Nobody here knows what happened inside; all there is are the answers
 * that clients got. So the state is what can be known: who holds, the highest token, and the
 * earliest instant at which the grant can end by itself. That instant is the deadline on the
 * holder's own handle, as it is what the service promised to the holder: a grant that ends before
 * it is the service's fault, whatever the reason (a clock, a dead session, a counting from the
 * reply). A grant may end later than that, or never.
 *
 * ```text
 *              acquire ok t > floor                      renew ok: until = later one
 *   free ─────────────────────────────▶ held by s, t ──────────────────────────────▶ held by s, t
 *     ▲                                     │
 *     ├─ release ok t · close of s · revoke ┤
 *     └─ from `until` on: expiry ───────────┘
 * ```
 *
 * What is unknown (`info`) may happen at any later time, more than once, or never; an acquire that
 * happened so is an **unseen** grant, whose token is known only as a lower bound. Once would be too
 * strict, as requests are repeated by networks; and to count how often each was used up would make
 * the search exponential in them.
 *
 * **Not modelled**: that a dead session gets nothing (the conformance kit asks that of each store);
 * an order among waiters; how soon a free key is granted. And an answered request that takes effect
 * twice: a history of a network that repeats those says `refused` of no acquire.
 *
 * @packageDocumentation
 */
export { type Event, formatHistory, type Header, type History, parseHistory } from './event.ts'
export { mayBeMinted } from './fencing-token.ts'
export { FREE, type Holder, type LockState, stateKey } from './lock-state.ts'
export type { Action, Called, Operation } from './operation.ts'
export { step } from './step.ts'
