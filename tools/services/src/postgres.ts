import { startLocalPostgres } from '@dlock/local-postgres'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** Of the run's PostgreSQL, as its superuser. */
    postgresUrl: string
  }
}

/** Vitest's global set-up: one throwaway PostgreSQL for the whole run. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const postgres = await startLocalPostgres({ settings: { max_connections: '400' } })
  project.provide('postgresUrl', postgres.url())
  return () => postgres.stop()
}
