/**
 * A lock store in PostgreSQL (14 or newer): one statement per verb, no lock held between statements,
 * no connection held between calls.
 *
 * **Who is authoritative.** The row of the key in `lock_entry`, alone, for who holds it; the row of
 * the session in `lock_session` for whether that counts. Time is the database's `now()` and nobody
 * else's. Tokens come from one sequence (`fencing-token.ts`).
 *
 * ```text
 *                 try-insert, transfer: mints             delete-if-owner, revoke, close, bury,
 *    no row ─────────────────────────────▶ granted ─┐     reap-expired: expires_at = -infinity
 *                 try-insert, transfer      ▲  │ ▲  │ extend
 *    vacant ────────────────────────────────┘  │ └──┘
 *      ▲  │                                    │
 *      │  └─ reap-expired: removed, late       │
 *      └───────────────────────────────────────┘
 * ```
 *
 * A grant is **live** while its `expires_at` and its session's are in the future. A row whose grant
 * is over is as good as no row, with one exception: while it is there, nobody who took a token
 * before can insert it late (`reap-expired.ts`).
 *
 * **What PostgreSQL sees when.** A statement sees other rows as of its start, and the row that it
 * changes in its newest version, after waiting for whoever changes it. So a take-over is decided by
 * the row of the key alone. A dead session's locks are freed by writing to the session first, which
 * a heartbeat in flight is ordered with (`sessions.ts`).
 *
 * **Many callers** share statements (`coalesce.ts`): what waits to be sent leaves as one, with the
 * keys in arrays. None suffers for another. **Every call ends** by its deadline (`execute.ts`), and
 * whatever fails is a `ContentionError` or a `NotLeaderError` that says whether it may have happened
 * (`translate-error.ts`): never "held", "lost" or "dead".
 *
 * **Not promised**: order among callers of one key. Anything after `lock_entry` was deleted from by
 * hand, or the sequence set back. Durability beyond the server's: `openPostgresStore` warns when
 * that is switched off.
 *
 * @packageDocumentation
 */
export type {
  PgListenClient,
  PgNotification,
  PgPool,
  PgPoolClient,
  PgQuery,
  PgResult,
} from './driver-shape.ts'
export { migrate } from './migrate.ts'
export { openPostgresStore } from './open.ts'
export { PostgresStore, type PostgresStoreOptions } from './postgres-store.ts'
