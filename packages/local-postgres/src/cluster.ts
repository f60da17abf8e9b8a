import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chown, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Account } from './account.ts'
import type { Binaries } from './binaries.ts'
import { exists, syncFolder } from './folders.ts'
import { isAlive } from './postmaster-pid.ts'

/** Files of one cluster. Both are readable by nobody but the account and root. */
export interface Cluster {
  readonly data: string
  readonly password: string
}

const run = promisify(execFile)

/** Where a folder keeps its cluster. */
export function clusterFolder(folder: string): string {
  return join(folder, 'cluster')
}

/** Whether `folder` holds a cluster already. */
export function holdsCluster(folder: string): Promise<boolean> {
  return exists(clusterFolder(folder))
}

/**
 * The cluster of `folder`, created when there is none. It appears whole or not at all, whenever
 * the process is killed, and when two create it at once one of the two remains.
 *
 * @param durable whether a new cluster's files must survive a power cut
 * @throws Error when the folder's cluster belongs to another major version
 */
export async function openCluster(
  folder: string,
  binaries: Binaries,
  account: Account | undefined,
  durable: boolean,
): Promise<Cluster> {
  const cluster = clusterFolder(folder)
  if (!(await exists(cluster))) await createCluster(folder, binaries, account, durable)
  const data = join(cluster, 'data')
  const version = (await readFile(join(data, 'PG_VERSION'), 'utf8')).trim()
  const major = binaries.version.split('.')[0]
  if (version !== major) {
    throw new Error(
      `${folder} holds a cluster of PostgreSQL ${version}, but the binaries in ${binaries.folder} are ${binaries.version}: use binaries of version ${version}, or dump and restore into another folder`,
    )
  }
  return { data, password: await readFile(join(cluster, 'password'), 'utf8') }
}

async function createCluster(
  folder: string,
  binaries: Binaries,
  account: Account | undefined,
  durable: boolean,
): Promise<void> {
  await removeAbandoned(folder)
  const unfinished = join(folder, `new-${process.pid}-${randomBytes(4).toString('hex')}`)
  await mkdir(unfinished, { recursive: true, mode: 0o700 })
  const password = join(unfinished, 'password')
  await writeFile(password, randomBytes(24).toString('base64url'), { mode: 0o600, flush: true })
  if (account !== undefined) {
    for (const path of [unfinished, password]) await chown(path, account.uid, account.gid)
  }
  const args = [
    ['--pgdata', join(unfinished, 'data')],
    ['--username', 'postgres', '--auth', 'scram-sha-256', '--pwfile', password],
    // Bytewise order, whatever the system's C library thinks of a language today.
    ['--encoding', 'UTF8', '--locale', 'C', '--data-checksums'],
    durable ? [] : ['--no-sync'],
  ].flat()
  try {
    await run(join(binaries.folder, 'initdb'), args, { ...account, cwd: '/', env: plainEnv() })
    await rename(unfinished, clusterFolder(folder))
    await syncFolder(folder)
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true })
    if (!(await exists(clusterFolder(folder)))) throw error
  }
}

/** Leftovers of processes that were killed while they created a cluster. */
async function removeAbandoned(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const pid = /^new-(\d+)-/.exec(name)?.[1]
    if (pid !== undefined && !isAlive(Number(pid))) {
      await rm(join(folder, name), { recursive: true, force: true })
    }
  }
}

/** PG… variables of the owner would change ports and settings; messages stay in English. */
export function plainEnv(): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' }
}
