/**
 * A PostgreSQL of your own that lives as long as its owner.
 *
 * `startLocalPostgres` takes binaries (the system's, or those on npm), a folder (yours, or a
 * throwaway one), and answers with a running server and its URL. The server is durable (fsync,
 * synchronous commit, data checksums), listens on 127.0.0.1 alone, and wants a random password that
 * only its operating-system user can read.
 *
 * Between owner and server stands a supervisor, a small process that holds one end of a pipe.
 * However the owner ends, `kill -9` included, the kernel closes the pipe and the supervisor shuts
 * the server down; a wanted stop takes the same path. What that does not cover: a supervisor that
 * is itself killed with -9 together with its owner leaves the server running, and the next start on
 * the folder says so.
 *
 * As root, whom PostgreSQL refuses, the server runs as the cluster's owner, as `postgres` or as
 * `nobody`, and binaries that this user cannot read are copied to where it can.
 *
 * @packageDocumentation
 */
export type { BinarySource } from './binaries.ts'
export { chooseFolder } from './choose-folder.ts'
export { createDatabase, dropDatabase } from './databases.ts'
export {
  type LocalPostgres,
  type LocalPostgresOptions,
  startLocalPostgres,
} from './local-postgres.ts'
