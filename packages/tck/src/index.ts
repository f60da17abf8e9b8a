/**
 * The contracts of `LockStore`, `SessionRegistry` and the capabilities, as tests. A store proves
 * itself with one call of `describeLockStore`; the kit knows no backend by name and never branches
 * on one. What differs between stores comes from what they declare: capabilities, and the bounds
 * of their TTLs.
 *
 * The cases are data (`storeCases`), so that they can be counted, and run against stores that are
 * broken on purpose: each rule here has been seen to fail a store that breaks it.
 *
 * Not covered, because it takes faults that only the store's own tests can make: that a transient
 * failure is an error and never "lost", "held" or "dead"; that no call outlasts its deadline.
 *
 * @packageDocumentation
 */
export { describeLockStore } from './describe-lock-store.ts'
export type {
  CapabilityName,
  StoreCase,
  StoreFixture,
  StoreNamespace,
  TestedStore,
} from './store-case.ts'
export { checkCapabilities, missingFor, runStoreCase, storeCases } from './store-cases.ts'
