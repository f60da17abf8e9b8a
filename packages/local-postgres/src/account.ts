import { execFile } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { promisify } from 'node:util'

/** The operating system's user that postgres runs as, when that is not this process's own. */
export interface Account {
  readonly uid: number
  readonly gid: number
}

const run = promisify(execFile)

/**
 * PostgreSQL refuses to run as root. For a root owner this is whoever the cluster belongs to
 * already, else the user `postgres`, else `nobody`. For anybody else it is `undefined`: themselves.
 */
export async function postgresAccount(cluster: string): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined
  const owner = await stat(cluster).catch(() => undefined)
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid }
  const account = (await lookUp('postgres')) ?? (await lookUp('nobody'))
  if (account === undefined) {
    throw new Error(
      'PostgreSQL refuses to run as root, and there is neither a user "postgres" nor "nobody": start as another user',
    )
  }
  return account
}

async function lookUp(name: string): Promise<Account | undefined> {
  try {
    const uid = await run('id', ['-u', name])
    const gid = await run('id', ['-g', name])
    return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
  } catch {
    return undefined
  }
}
