/**
 * A lock store in one map: the executable specification that the other stores are compared with,
 * and the quick one for tests and for a process that only excludes its own tasks.
 *
 * A grant is **live** from its insertion until its lease runs out, its session dies, or it is
 * deleted: by its holder (`delete-if-owner.ts`), with its session (`sessions.ts`), by an operator
 * (`revoke.ts`) or in favour of the next holder (`transfer.ts`). A record that is not live counts
 * for nothing, whether or not the reaper has been (`reap-expired.ts`).
 *
 * The store is authoritative for who holds a key. Time is the monotonic clock it was given; the
 * wall clock only shows in dates for people. Tokens come from one counter (`fencing-token.ts`).
 * Each verb has a file of its own, named alike in every store.
 *
 * @packageDocumentation
 */
export { MemoryStore, type MemoryStoreOptions } from './memory-store.ts'
