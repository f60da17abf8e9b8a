import { resolve } from 'node:path'
import { postgresAccount } from './account.ts'
import { clusterFolder, holdsCluster } from './cluster.ts'
import { canReach } from './folders.ts'

/**
 * The one of `candidates` to keep a cluster in: that which holds one already, else the first that
 * the user PostgreSQL runs as can enter. An existing cluster wins even when it cannot be used now,
 * because to begin an empty one beside it would be to forget what the first had promised.
 *
 * @throws Error when more than one holds a cluster, or none can be used
 */
export async function chooseFolder(candidates: readonly string[]): Promise<string> {
  const folders = candidates.map((candidate) => resolve(candidate))
  const taken: string[] = []
  for (const folder of folders) if (await holdsCluster(folder)) taken.push(folder)
  if (taken.length > 1) {
    throw new Error(
      `${taken.join(' and ')} hold a cluster each: name the one to use, and move the other away`,
    )
  }
  if (taken[0] !== undefined) return taken[0]
  for (const folder of folders) {
    if (await canReach(folder, await postgresAccount(clusterFolder(folder)))) return folder
  }
  throw new Error(`the user that PostgreSQL has to run as can enter none of ${folders.join(', ')}`)
}
