/**
 * A lock store in etcd: one transaction per verb, observably the same as its siblings but for what
 * its declared bounds say about time.
 *
 * The obvious design, a lease per grant that is kept alive, is not safe: a leader that was frozen
 * and resumes acknowledges leases that are gone, and revokes ones that were renewed. So nothing
 * here trusts a keep-alive. A grant is two keys: the **lock**, written once, whose `ModRevision` is
 * the token (`fencing-token.ts`), and the **TTL marker**, which a renewal moves by compare-and-swap
 * from one short **slot** lease to a newer one (`slots.ts`, `extend.ts`). Held means that both
 * exist, and the holder's session marker too (`sessions.ts`), which moves the same way.
 *
 * etcd alone is authoritative, for who holds a key and for when a lease ends. What a process
 * remembers (`etcd-state.ts`) is a guess, checked by a compare in every transaction: any process
 * serves any call, and one that dies loses nothing but its own waiters.
 *
 * The trust window: a write whose answer was lost may be applied later, even after a linearizable
 * read has said that it was not. Every transaction is therefore harmless when it comes late: it
 * compares what it saw, and a grant carries a fence of its own (`try-insert.ts`).
 *
 * @packageDocumentation
 */
export type { EtcdTls } from './client/etcd-client.ts'
export { TTL_BOUNDS } from './etcd-state.ts'
export { EtcdStore, type EtcdStoreOptions } from './etcd-store.ts'
