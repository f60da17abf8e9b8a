/**
 * What the tests of this repository need running.
 *
 * `postgres.ts` is Vitest's global set-up: it starts one PostgreSQL for the whole run, durable as
 * in production. A test file takes a database of its own on it, and so runs beside all others.
 * `EtcdCluster` is a file's own: an etcd starts in a fraction of a second, and most of its tests break
 * it.
 *
 * @packageDocumentation
 */
export { debianProgram } from './debian-program.ts'
export { EtcdCluster } from './etcd-cluster.ts'
export { createTestDatabase, type TestDatabase } from './test-database.ts'
