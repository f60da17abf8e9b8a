import { userInfo } from 'node:os'
import { FencedOutError } from '@dlock/lock-api'
import {
  formatFencingToken,
  listings,
  operations,
  RemoteError,
  type Revoked,
} from '@dlock/protocol'
import { CommandFailure, exitCodes } from './exit-codes.ts'
import { type Pushed, pushFloor } from './push.ts'
import type { Service } from './service.ts'
import type { Shell } from './shell.ts'
import { table } from './table.ts'

/** `dlock ls`: the locks that are held. */
export async function listLocks(
  service: Service,
  { prefix, json }: { readonly prefix: string | undefined; readonly json: boolean },
  shell: Shell,
): Promise<number> {
  const rows: string[][] = []
  for await (const lock of service.list(listings.listLocks, prefix ? { prefix } : {})) {
    const { key, ownerId, fencingToken, acquiredAt, expiresAt, waiterCount } = lock
    if (json) shell.out(JSON.stringify(lock))
    rows.push([key, ownerId, fencingToken, acquiredAt, expiresAt, String(waiterCount)])
  }
  if (json) return exitCodes.done
  const header = ['KEY', 'OWNER', 'TOKEN', 'ACQUIRED', 'EXPIRES', 'WAITING']
  shell.out(rows.length === 0 ? 'No lock is held.' : table(header, rows))
  return exitCodes.done
}

/** `dlock inspect`: one lock. */
export async function inspect(
  service: Service,
  { key, json }: { readonly key: string; readonly json: boolean },
  shell: Shell,
): Promise<number> {
  const lock = await service.call(operations.inspect, { key })
  if (json) shell.out(JSON.stringify(lock))
  if (!lock.held) {
    if (!json) shell.out(`Nobody holds ${JSON.stringify(key)}.`)
    return exitCodes.no
  }
  if (!json) {
    const { ownerId, fencingToken, acquiredAt, expiresAt, waiterCount } = lock
    const rows = [
      ['owner', ownerId],
      ['token', fencingToken],
      ['acquired', acquiredAt],
      ['expires', expiresAt],
      ['waiting', String(waiterCount)],
    ]
    shell.out(table(['key', key], rows))
  }
  return exitCodes.done
}

export interface RevokeOptions {
  readonly key: string
  readonly reason: string
  readonly operator?: string
  readonly token?: bigint
  /** The `advance` of the guards that have to hear of it. */
  readonly push: readonly URL[]
  readonly json: boolean
}

/** `dlock revoke`: takes a lock away from whoever holds it, and says what that does not do. */
export async function revoke(
  service: Service,
  { key, reason, operator = userInfo().username, token, push, json }: RevokeOptions,
  shell: Shell,
): Promise<number> {
  const expected = token === undefined ? {} : { expectedToken: formatFencingToken(token) }
  const input = { key, operator, reason, ...expected }
  const revoked = await service.call(operations.revoke, input).catch((error: unknown) => {
    throw refusedRevocation(key, error)
  })
  const pushed = await pushFloor(push, revoked.newTokenFloor, operator)
  if (json) shell.out(JSON.stringify({ ...revoked, pushed }))
  else tellRevoked(key, revoked, pushed, shell)
  return pushed.every(({ acknowledged }) => acknowledged) ? exitCodes.done : exitCodes.no
}

function tellRevoked(
  key: string,
  { revokedToken, newTokenFloor, revocationId }: Revoked,
  pushed: readonly Pushed[],
  shell: Shell,
): void {
  shell.out(`Revoked ${JSON.stringify(key)}, token ${revokedToken} (record ${revocationId}).`)
  shell.out(`Every later token is above ${newTokenFloor}.`)
  for (const { url, acknowledged, why } of pushed) {
    shell.out(acknowledged ? `Fenced: ${url}` : `NOT FENCED: ${url}: ${why}`)
  }
  const others = pushed.length === 0 ? 'a resource' : 'any other resource'
  shell.out(
    `Not fenced yet: ${others} that has seen no higher token still accepts ${revokedToken}. Push the floor
${newTokenFloor} to the guards of every resource under this lock (--push URL), or wait until a later holder has
written there.`,
  )
}

function refusedRevocation(key: string, error: unknown): unknown {
  if (error instanceof RemoteError && error.code === 'NOT_FOUND') {
    return new CommandFailure(exitCodes.no, `nobody holds ${JSON.stringify(key)}`)
  }
  if (error instanceof FencedOutError) {
    const { storedToken } = error
    const message = `${JSON.stringify(key)} is held with token ${storedToken} now, not with the one given: nothing was revoked`
    return new CommandFailure(exitCodes.no, message)
  }
  return error
}
