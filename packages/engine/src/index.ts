/**
 * `LockService` over any store, in the process that uses it (library mode) or behind a server. The
 * engine knows no store by name: it needs the two contracts, and does without whatever capability
 * is missing.
 *
 * **Who is authoritative.** The store, alone, for who holds a key and which session lives, by its
 * own clock. The engine keeps a book of what went through it (`grants.ts`, `sessions.ts`); the
 * book decides how soon to look and what to report, never who holds. The holder's deadline on a
 * handle is the engine's: request sent + granted lease × (1 − safety margin), on this process's
 * monotonic clock.
 *
 * **The trust window.** From the sending of the request to that deadline a holder may believe that
 * it holds; the store keeps the grant at least until then, and longer by the margin and the way
 * there. A belief is not safety: a process can be paused after it looked. Safety is the token at
 * the resource. The engine's part in it is that a token is handed out once, and never below an
 * earlier one (`token-guard.ts`).
 *
 * **Waiting** (`waiter.ts`, `wait-queue.ts`). Calls for one key queue in this process, first in,
 * first out; only the head talks to the store.
 *
 * ```text
 *            granted                        handed on by a release here
 *   asking ───────────▶ done      waiting ───────────────────────────────▶ done
 *     │ held                        ▲ │ head, and: announced free · lease ends · poll due
 *     └─────────────────────────────┘ └──▶ asking
 *   at any time: deadline → "not mine" · abort, dead session, close → rejected; while a question
 *   is on its way, after its answer, and a grant in that answer is passed on or released
 * ```
 *
 * A head that was refused marks the grant as wanted and sleeps until its release is announced or
 * its lease ends; once a second it looks, in case an announcement was lost. A release in the same
 * process hands the key to the head in one statement (`hand-off.ts`). The order is first in, first
 * out within a process; between processes it is theirs in turn where the store has a queue for
 * them (`QueueCapability`), and else goes to whoever asks first, and a busy process steps back once
 * a second.
 *
 * **Not promised**: order across processes; that an event tells of every end of a grant
 * (`lock-event.ts`); that a grant whose answer was lost is gone before its lease ends, when the
 * store fails again as the engine tries to find out.
 *
 * @packageDocumentation
 */
export type { EngineOptions } from './engine-options.ts'
export { LockEngine } from './lock-engine.ts'
export type { LockEvent } from './lock-event.ts'
export type { EngineMeter } from './meter.ts'
