import type { IncomingMessage } from 'node:http'
import { Failure } from '@dlock/protocol'

/** Who a caller turned out to be. */
export interface Identity {
  /** The name that ends in a revocation's audit record; `undefined`: the caller names itself. */
  readonly name: string | undefined
  readonly role: Role
}

/** A viewer looks, a client locks too, an operator revokes and lists too. */
export type Role = 'viewer' | 'client' | 'operator'

/**
 * The seam of authentication: who sent `request` (its headers, its socket's certificate), or
 * `undefined` when nobody this server knows. Asked for each HTTP request, and once for each
 * multiplexed connection.
 */
export type Authenticate = (request: IncomingMessage) => Promise<Identity | undefined>

/** Without authentication everybody who can reach the port may do everything. */
export const anonymousOperator: Identity = { name: undefined, role: 'operator' }

const rank: Readonly<Record<Role, number>> = { viewer: 0, client: 1, operator: 2 }

export function mayAct(identity: Identity, role: Role): boolean {
  return rank[identity.role] >= rank[role]
}

/** Who sent `request`; nobody this server knows is a failure. */
export async function identified(
  authenticate: Authenticate,
  request: IncomingMessage,
): Promise<Identity> {
  const identity = await authenticate(request)
  if (identity === undefined) throw new Failure('UNAUTHENTICATED', 'this server does not know you')
  return identity
}
