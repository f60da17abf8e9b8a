/**
 * The store's own client, for measurements beside it. Not part of what this package promises: it may
 * change with any release.
 *
 * @packageDocumentation
 */
export { EtcdClient } from './etcd-client.ts'
export { absent, put, remove, unchangedSince } from './txn.ts'
