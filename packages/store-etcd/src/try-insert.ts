import {
  ContentionError,
  checkKey,
  checkOwnerId,
  checkSessionId,
  checkTtlMs,
  grantedTtlMs,
  type LockHandle,
  SessionDeadError,
} from '@dlock/lock-api'
import { EtcdError } from './client/etcd-error.ts'
import {
  absent,
  type Compare,
  exists,
  get,
  listKeys,
  nested,
  type Op,
  prefixEnd,
  put,
  remove,
  type TxnAnswer,
  unchangedSince,
} from './client/txn.ts'
import { type EtcdState, TTL_BOUNDS } from './etcd-state.ts'
import { extend } from './extend.ts'
import { tokenOf } from './fencing-token.ts'
import {
  forgetTicketSlot,
  isOthersTurn,
  nobodyBefore,
  takeTurn,
  ticketSlot,
  turnTaken,
} from './queue.ts'
import { encode, type LockRecord, lockRecordOf } from './records.ts'
import { deadState, requireSession } from './sessions.ts'

const TRIES = 8

/** One try to get one key: everything that its transactions are built from. */
export interface Attempt {
  readonly key: string
  readonly ownerId: string
  readonly sessionId: string
  readonly ttlMs: number
  /** Names the try, so that it can be recognised and fenced off when its answer was lost. */
  readonly name: string
  readonly carrier: string
  readonly slot: string
  /** For the new ticket of a process that stands in the queue. */
  readonly ticketSlot: string | undefined
}

export async function tryInsert(
  state: EtcdState,
  key: string,
  ownerId: string,
  sessionId: string,
  ttlMs: number,
): Promise<LockHandle | undefined> {
  checkKey(key)
  checkOwnerId(ownerId)
  checkSessionId(sessionId)
  checkTtlMs(ttlMs)
  const granted = grantedTtlMs(ttlMs, TTL_BOUNDS)
  for (let tries = 0; tries < TRIES; tries += 1) {
    await state.epoch.requireServing()
    const sentNanos = state.clock.monotonicNanos()
    const attempt = await beginAttempt(state, { key, ownerId, sessionId, ttlMs: granted })
    const result = await attemptOnce(state, attempt)
    switch (result.kind) {
      case 'granted':
        return recordGrant(state, attempt, result.revision, sentNanos)
      case 'held':
        return undefined
      case 'mine': {
        const again = await extend(state, key, result.fencingToken, granted)
        if (again !== undefined) return again
        break
      }
      case 'session-dead':
        throw new SessionDeadError(await deadState(state, sessionId))
      case 'again':
        break
    }
  }
  throw new ContentionError(`the holder of the key changed ${TRIES} times while it was asked for`)
}

export async function beginAttempt(
  state: EtcdState,
  wanted: Pick<Attempt, 'key' | 'ownerId' | 'sessionId' | 'ttlMs'>,
): Promise<Attempt> {
  const [session, slot, forTicket] = await Promise.all([
    requireSession(state, wanted.sessionId),
    state.slots.leaseFor(wanted.ttlMs),
    ticketSlot(state, wanted.key),
  ])
  const { carrier } = session.marker
  return { ...wanted, name: state.ids.uuid(), carrier, slot, ticketSlot: forTicket }
}

type Result =
  | { readonly kind: 'granted'; readonly revision: bigint }
  | { readonly kind: 'mine'; readonly fencingToken: bigint }
  | { readonly kind: 'held' | 'session-dead' | 'again' }

/**
 * Free, expired, and held are told apart in one round trip. A holder whose session is dead but not
 * yet swept takes a second, which names that session.
 */
async function attemptOnce(state: EtcdState, attempt: Attempt): Promise<Result> {
  const { keys } = state
  const { key, sessionId } = attempt
  const grantIf = (condition: Compare, otherwise: readonly Op[]) => ({
    compare: [...guards(state, attempt), condition],
    success: grantOps(state, attempt),
    failure: otherwise,
  })
  const tickets = keys.tickets(key)
  const look = [
    get(keys.lock(key)),
    get(keys.session(sessionId)),
    get(keys.meta),
    listKeys(tickets, prefixEnd(tickets)),
  ]
  const txn = grantIf(absent(keys.lock(key)), [nested(grantIf(absent(keys.ttl(key)), look))])
  const answer = await propose(state, attempt, txn)
  if (answer === 'again') return { kind: 'again' }
  if (answer === 'granted-before') return await adopt(state, attempt)
  if (answer.succeeded || answer.nested(0).succeeded) {
    return { kind: 'granted', revision: answer.revision }
  }
  const seen = answer.nested(0)
  if (seen.got(1) === undefined) return { kind: 'session-dead' }
  if (!state.epoch.isCurrent(seen.got(2))) {
    await state.epoch.load()
    return { kind: 'again' }
  }
  const lock = seen.got(0)
  const holder = lock === undefined ? undefined : lockRecordOf(lock)
  if (lock !== undefined && holder?.sessionId === sessionId) {
    return { kind: 'mine', fencingToken: tokenOf(lock) }
  }
  if (isOthersTurn(state, key, seen.listed(3))) return { kind: 'held' }
  if (lock === undefined || holder === undefined) return { kind: 'again' }
  return await inheritFromDead(state, attempt, lock.modRevision, holder)
}

async function inheritFromDead(
  state: EtcdState,
  attempt: Attempt,
  lockRevision: bigint,
  holder: LockRecord,
): Promise<Result> {
  const { keys } = state
  const answer = await propose(state, attempt, {
    compare: [
      ...guards(state, attempt),
      unchangedSince(keys.lock(attempt.key), lockRevision),
      absent(keys.session(holder.sessionId)),
    ],
    success: [...grantOps(state, attempt), remove(keys.held(holder.sessionId, attempt.key))],
    failure: [
      get(keys.lock(attempt.key)),
      get(keys.ttl(attempt.key)),
      get(keys.session(holder.sessionId)),
    ],
  })
  if (answer === 'again') return { kind: 'again' }
  if (answer === 'granted-before') return await adopt(state, attempt)
  if (answer.succeeded) return { kind: 'granted', revision: answer.revision }
  const [lock, ttl, session] = [answer.got(0), answer.got(1), answer.got(2)]
  if (lock === undefined || ttl === undefined) return { kind: 'again' }
  // Another lock by now: it was granted since the first look, so for that instant it was held.
  const changed = lock.modRevision !== lockRevision
  return { kind: changed || session !== undefined ? 'held' : 'again' }
}

/** Without these an attempt must not be granted, whatever the key is. */
export function guards(state: EtcdState, attempt: Attempt): Compare[] {
  return [
    exists(state.keys.session(attempt.sessionId)),
    absent(state.keys.fence(attempt.name)),
    nobodyBefore(state, attempt.key),
    state.epoch.unchanged,
  ]
}

/** The lock, its index and its TTL marker. The lock's write is the grant: its revision, the token. */
export function grantOps(state: EtcdState, attempt: Attempt): Op[] {
  const { key, ownerId, sessionId, carrier, slot, name, ttlMs } = attempt
  const record: LockRecord = {
    ownerId,
    sessionId,
    attempt: name,
    tokenOffset: state.epoch.tokenOffset,
    acquiredAtMs: state.nowMs(),
    ttlMs,
  }
  return [
    ...takeTurn(state, key, name, attempt.ticketSlot),
    put(state.keys.lock(key), encode(record), carrier),
    put(state.keys.held(sessionId, key), '', carrier),
    put(state.keys.ttl(key), encode(state.ttlRecord(ttlMs)), slot),
  ]
}

export function recordGrant(
  state: EtcdState,
  { key, ownerId, sessionId, ttlMs, name, ticketSlot: slot }: Attempt,
  revision: bigint,
  sentNanos: bigint,
): LockHandle {
  const grant = {
    fencingToken: BigInt(state.epoch.tokenOffset) + revision,
    lockRevision: revision,
    ttlRevision: revision,
    ttlMs,
    ownerId,
    sessionId,
  }
  state.grants.set(key, grant)
  turnTaken(state, key, name, slot, revision)
  return state.handleOf(key, grant, sentNanos, ttlMs)
}

/**
 * Proposes a granting transaction, and when its fate is unknown, settles it: a fence on the
 * attempt's own slot, so that it lasts for as long as the attempt could still be applied with it.
 * Reading alone would not do: an attempt can be applied after a linearizable read has said that it
 * was not.
 */
export async function propose(
  state: EtcdState,
  attempt: Attempt,
  txn: Parameters<EtcdState['proposals']['submit']>[0],
): Promise<TxnAnswer | 'granted-before' | 'again'> {
  try {
    return await state.proposals.submit(txn, [attempt.key])
  } catch (error) {
    if (!(error instanceof EtcdError)) throw error
    if (error.kind === 'lease-gone') {
      // The slot, or the carrier and with it the session: a fresh look tells which.
      state.slots.forget(attempt.ttlMs)
      forgetTicketSlot(state)
      state.sessions.delete(attempt.sessionId)
      return 'again'
    }
    if (error.kind !== 'unknown') throw error
    return (await fenceOff(state, attempt)) ? 'granted-before' : 'again'
  }
}

/** @returns whether the attempt had been applied; if not, it never will be */
async function fenceOff(state: EtcdState, attempt: Attempt): Promise<boolean> {
  try {
    const answer = await state.client.txn({
      compare: [],
      success: [
        put(state.keys.fence(attempt.name), '', attempt.slot),
        get(state.keys.lock(attempt.key)),
      ],
      failure: [],
    })
    const lock = answer.got(1)
    return lock !== undefined && lockRecordOf(lock).attempt === attempt.name
  } catch (error) {
    // With the slot gone the attempt can no longer be applied: it needs that lease too.
    if (error instanceof EtcdError && error.kind === 'lease-gone') return false
    throw error
  }
}

/** The attempt was granted; its answer was lost, and the record still says when. */
async function adopt(state: EtcdState, attempt: Attempt): Promise<Result> {
  const { items } = await state.client.range({ key: Buffer.from(state.keys.lock(attempt.key)) })
  const [lock] = items
  if (lock === undefined || lockRecordOf(lock).attempt !== attempt.name) return { kind: 'again' }
  turnTaken(state, attempt.key, attempt.name, attempt.ticketSlot, lock.modRevision)
  return { kind: 'mine', fencingToken: tokenOf(lock) }
}
