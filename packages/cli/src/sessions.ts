import { listings } from '@dlock/protocol'
import { exitCodes } from './exit-codes.ts'
import type { Service } from './service.ts'
import type { Shell } from './shell.ts'
import { table } from './table.ts'

/** `dlock sessions`: the clients that are alive. */
export async function listSessions(
  service: Service,
  { json }: { readonly json: boolean },
  shell: Shell,
): Promise<number> {
  const rows: string[][] = []
  for await (const session of service.list(listings.listSessions, {})) {
    const { sessionRef, ownerId, createdAt, expiresAt, heldLockCount } = session
    if (json) shell.out(JSON.stringify(session))
    rows.push([sessionRef, ownerId, createdAt, expiresAt, String(heldLockCount)])
  }
  if (json) return exitCodes.done
  const header = ['SESSION', 'OWNER', 'OPENED', 'EXPIRES', 'LOCKS']
  shell.out(rows.length === 0 ? 'No session is open.' : table(header, rows))
  return exitCodes.done
}
