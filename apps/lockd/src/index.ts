/**
 * The daemon: reads its configuration (`configuration.ts`, one table in `settings.ts`), opens the
 * store (`stores.ts`, the only place that names stores; `embedded.ts` when no database is
 * configured), puts the engine and the server over it (`main.ts`), and stops when asked to.
 *
 * It keeps nothing itself. Killed at any moment, with `-9` too, it loses no grant and repeats no
 * token: both are committed in the store before they are answered. Any number of lockd may share
 * one database.
 *
 * @packageDocumentation
 */
export { main } from './main.ts'
