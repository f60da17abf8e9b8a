import { cpus, release, totalmem, type } from 'node:os'

/** What the figures were made on. */
export function describeMachine(postgresVersion: string): readonly string[] {
  const [first] = cpus()
  return [
    `${cpus().length} × ${first?.model.trim() ?? 'unknown CPU'}, ${Math.round(totalmem() / 2 ** 30)} GiB`,
    `${type()} ${release()}, Node ${process.versions.node}, PostgreSQL ${postgresVersion} on the same machine`,
    'fsync, full_page_writes and synchronous_commit are on',
  ]
}
