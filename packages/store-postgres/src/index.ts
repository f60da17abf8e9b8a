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
