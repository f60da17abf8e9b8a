import type { Action, Operation } from '@dlock/model'
import type { Random } from '@dlock/system'

/**
 * A lock that is right, in a few lines that share none with the model: the source of tiny histories.
 * Instants are small integers, and several things may happen at one instant.
 */
class ToyLock {
  #holder: { session: string; token: bigint; end: number } | undefined
  #highest = 0n

  act(action: Wish, session: string, now: number): Outcome {
    const recorded = this.#holder
    const holder = recorded !== undefined && recorded.end > now ? recorded : undefined
    switch (action.f) {
      case 'acquire': {
        if (holder !== undefined && holder.session !== session)
          return { type: 'fail', refused: true }
        const end = Math.max(holder?.end ?? 0, now + action.leaseMs)
        const token = holder?.token ?? this.#highest + action.gap
        this.#highest = token
        this.#holder = { session, token, end }
        return { type: 'ok', token, until: end }
      }
      case 'renew':
        if (holder?.token !== action.token) return { type: 'fail', refused: true }
        holder.end = Math.max(holder.end, now + action.leaseMs)
        return { type: 'ok', until: holder.end }
      case 'release':
        // By the record alone: it may lie there when the lease is over.
        if (recorded?.token !== action.token) return { type: 'fail', refused: true }
        this.#holder = undefined
        return { type: 'ok' }
      case 'revoke': {
        if (holder === undefined) return { type: 'fail', refused: true }
        this.#highest += action.gap
        this.#holder = undefined
        return { type: 'ok', token: holder.token, floor: this.#highest }
      }
      case 'close':
        if (holder?.session === session) this.#holder = undefined
        return { type: 'ok' }
    }
  }
}

interface Wish {
  readonly f: Operation['f']
  readonly token: bigint
  readonly leaseMs: number
  readonly gap: bigint
}

interface Outcome {
  readonly type: 'ok' | 'fail' | 'info'
  readonly refused?: boolean
  readonly token?: bigint
  readonly until?: number
  readonly floor?: bigint
}

interface Open {
  readonly id: number
  readonly wish: Wish
  readonly invokedAt: number
  outcome: Outcome | undefined
}

class ToyClient {
  process: number
  readonly session: string
  token: bigint | undefined
  open: Open | undefined

  constructor(process: number, session: string) {
    this.process = process
    this.session = session
  }
}

/** So many calls of three clients, of a lock that is right; about one in eight ends unknown. */
export function tinyHistory(random: Random, calls: number): Operation[] {
  const lock = new ToyLock()
  const clients = ['a', 'b', 'c'].map((session, process) => new ToyClient(process, session))
  const operations: Operation[] = []
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random.next() * from.length)] as T
  let now = 0
  let id = 0
  while (operations.length < calls) {
    if (random.next() < 0.7) now += 1
    const client = pick(clients)
    const { open } = client
    if (open === undefined) {
      const wish = wishOf(client, random)
      client.open = { id, wish, invokedAt: now, outcome: undefined }
      id += 1
    } else if (open.outcome === undefined && random.next() < 0.9) {
      open.outcome = lock.act(open.wish, client.session, now)
    } else {
      operations.push(ended(client, open, now, open.outcome === undefined || random.next() < 0.1))
    }
  }
  // Whoever is not done yet is never heard of; some of it has happened.
  for (const client of clients) {
    if (client.open !== undefined) operations.push(ended(client, client.open, now, true))
  }
  return operations
}

function wishOf({ token }: ToyClient, random: Random): Wish {
  const f = FUNCTIONS[Math.floor(random.next() * FUNCTIONS.length)] ?? 'acquire'
  const needsToken = f === 'renew' || f === 'release'
  return {
    f: needsToken && token === undefined ? 'acquire' : f,
    token: token ?? 0n,
    leaseMs: 1 + Math.floor(random.next() * 6),
    gap: random.next() < 0.7 ? 1n : 3n,
  }
}

const FUNCTIONS = [
  'acquire',
  'acquire',
  'acquire',
  'renew',
  'release',
  'release',
  'revoke',
  'close',
] as const

function ended(client: ToyClient, open: Open, now: number, isLost: boolean): Operation {
  const { id, wish, invokedAt, outcome } = open
  const { process, session } = client
  client.open = undefined
  const came = isLost || outcome === undefined ? ({ type: 'info' } as const) : outcome
  if (came.type === 'info') client.process += 3
  if (wish.f === 'acquire' && came.type === 'ok') client.token = came.token
  const token = wish.f === 'renew' || wish.f === 'release' ? { token: wish.token } : {}
  const action = { f: wish.f, ...token, ...came } as Action
  const endedAt = came.type === 'info' ? Number.POSITIVE_INFINITY : now
  return { id, process, session, invokedAt, endedAt, ...action }
}

/** The same history with one answer changed, so that it may be wrong now. */
export function withOneChange(operations: readonly Operation[], random: Random): Operation[] {
  const victim = Math.floor(random.next() * operations.length)
  return operations.map((op, index) => (index === victim ? changed(op, random.next()) : op))
}

function changed(op: Operation, chance: number): Operation {
  const way = Math.floor(chance * 5)
  if (way === 0 && 'token' in op) return { ...op, token: op.token + 1n }
  if (way === 1 && 'token' in op && op.token > 1n) return { ...op, token: op.token - 1n }
  if (way === 2 && 'until' in op) return { ...op, until: op.until + 4 }
  if (way === 3 && op.type === 'fail' && op.f === 'release') {
    return { ...op, type: 'ok' } as Operation
  }
  if (op.type !== 'ok') return op
  return { ...op, type: 'fail', refused: true } as Operation
}
