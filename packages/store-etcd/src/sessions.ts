import {
  checkOwnerId,
  checkSessionId,
  checkTtlMs,
  grantedTtlMs,
  SessionDeadError,
  type SessionState,
} from '@dlock/lock-api'
import { EtcdError } from './client/etcd-error.ts'
import { absent, exists, get, type KeyValue, put, remove, unchangedSince } from './client/txn.ts'
import { type EtcdState, type SeenSession, TTL_BOUNDS } from './etcd-state.ts'
import { liveLocksOf } from './locks-of.ts'
import { encode, type MarkerRecord, markerRecordOf } from './records.ts'
import { randomLeaseId } from './slots.ts'

/**
 * A session is a marker on a slot lease, moved by compare-and-swap like a lock's. Its locks hang on
 * a **carrier**, a lease of the session's own that is revoked when the marker is gone, and that is
 * long, because keeping it alive proves nothing: it only sweeps up after a session that every
 * process of ours has forgotten.
 */
const CARRIER_SECONDS = 3_600
const KEEP_CARRIER_EVERY_NANOS = 300n * 1_000_000_000n
// Each try loses only to one that another process won.
const TRIES = 16

export async function openSession(
  state: EtcdState,
  ownerId: string,
  ttlMs: number,
): Promise<string> {
  checkOwnerId(ownerId)
  checkTtlMs(ttlMs)
  const granted = grantedTtlMs(ttlMs, TTL_BOUNDS)
  try {
    return await openNow(state, ownerId, granted)
  } catch (error) {
    if (!(error instanceof EtcdError && error.kind === 'lease-gone')) throw error
    // Nothing was written: the cluster was restored, or the slot outlived a stall of this process.
    state.slots.forget(granted)
    return await openNow(state, ownerId, granted)
  }
}

async function openNow(state: EtcdState, ownerId: string, granted: number): Promise<string> {
  const sessionId = state.ids.uuid()
  const carrier = randomLeaseId(state.ids)
  const [slot] = await Promise.all([
    state.slots.leaseFor(granted),
    state.client.leaseGrant(carrier, carrierSeconds(granted)),
  ])
  const marker = markerOf(state, ownerId, carrier, granted)
  const record = { ownerId, carrier, createdAtMs: state.nowMs() }
  const answer = await state.proposals.submit(
    {
      compare: [absent(state.keys.session(sessionId))],
      success: [
        put(state.keys.session(sessionId), encode(marker), slot),
        put(state.keys.sessionRecord(sessionId), encode(record), carrier),
      ],
      failure: [],
    },
    [sessionId],
  )
  remember(state, sessionId, marker, answer.revision)
  return sessionId
}

export async function heartbeat(
  state: EtcdState,
  sessionId: string,
  ttlMs: number,
): Promise<boolean> {
  checkSessionId(sessionId)
  checkTtlMs(ttlMs)
  return await state.inTurn(sessionId, () => heartbeatNow(state, sessionId, ttlMs))
}

async function heartbeatNow(state: EtcdState, sessionId: string, ttlMs: number): Promise<boolean> {
  let session = state.sessions.get(sessionId) ?? (await readSession(state, sessionId))
  for (let tries = 0; tries < TRIES && session !== undefined; tries += 1) {
    // Never shorter than it was; what is left of it cannot be asked of etcd reliably.
    const granted = Math.max(grantedTtlMs(ttlMs, TTL_BOUNDS), session.marker.ttlMs)
    const moved = await moveMarker(state, sessionId, session, granted)
    if (moved === 'moved') {
      await keepCarrier(state, sessionId)
      return true
    }
    session = moved
  }
  if (session === undefined) return false
  throw new EtcdError('unknown', 'the session was prolonged by others at the same time')
}

/**
 * One compare-and-swap: without the compare, a delayed duplicate of an older heartbeat would move
 * the marker back to a lease that ends sooner.
 *
 * @returns what the session is now when the guess was wrong; `undefined` when it is dead
 */
async function moveMarker(
  state: EtcdState,
  sessionId: string,
  session: SeenSession,
  ttlMs: number,
): Promise<'moved' | SeenSession | undefined> {
  const name = state.keys.session(sessionId)
  const marker = markerOf(state, session.marker.ownerId, session.marker.carrier, ttlMs)
  try {
    const slot = await state.slots.leaseFor(ttlMs)
    const answer = await state.proposals.submit(
      {
        compare: [unchangedSince(name, session.markerRevision)],
        success: [put(name, encode(marker), slot)],
        failure: [get(name)],
      },
      [sessionId],
    )
    if (answer.succeeded) {
      remember(state, sessionId, marker, answer.revision, session.carrierKeptNanos)
      return 'moved'
    }
    return rememberStored(state, sessionId, answer.got(0))
  } catch (error) {
    if (!(error instanceof EtcdError && error.kind === 'lease-gone')) throw error
    state.slots.forget(ttlMs)
    return session
  }
}

/** Off the books of the answer: a carrier is long, so one failure to keep it harms nobody. */
async function keepCarrier(state: EtcdState, sessionId: string): Promise<void> {
  const session = state.sessions.get(sessionId)
  const now = state.clock.monotonicNanos()
  if (session === undefined || now - session.carrierKeptNanos < KEEP_CARRIER_EVERY_NANOS) return
  try {
    await state.client.leaseKeepAlive(session.marker.carrier)
    state.sessions.set(sessionId, { ...session, carrierKeptNanos: now })
  } catch (error) {
    if (!(error instanceof EtcdError)) throw error
  }
}

export async function closeSession(state: EtcdState, sessionId: string): Promise<number> {
  checkSessionId(sessionId)
  const session = await readSession(state, sessionId)
  if (session === undefined) return 0
  const held = await liveLocksOf(state, sessionId)
  // Without its marker a session holds nothing, so this alone releases everything, in one step.
  const name = state.keys.session(sessionId)
  const answer = await state.proposals.submit(
    { compare: [exists(name)], success: [remove(name)], failure: [] },
    [sessionId],
  )
  state.sessions.delete(sessionId)
  await sweepCarrier(state, session.marker.carrier)
  return answer.succeeded ? held.size : 0
}

/** Removes what a dead session left. Any process may; it changes nothing that anybody can observe. */
export async function sweepCarrier(state: EtcdState, carrier: string): Promise<void> {
  try {
    await state.client.leaseRevoke(carrier)
  } catch (error) {
    if (!(error instanceof EtcdError)) throw error
  }
}

export async function locksOf(state: EtcdState, sessionId: string): Promise<ReadonlySet<string>> {
  return liveLocksOf(state, checkSessionId(sessionId))
}

export async function describeSession(state: EtcdState, sessionId: string): Promise<SessionState> {
  const session = await readSession(state, checkSessionId(sessionId))
  if (session === undefined) return { state: await deadState(state, sessionId) }
  const { ownerId, ttlMs, expiresAtMs } = session.marker
  const remainingMs = Math.min(Math.max(expiresAtMs - state.nowMs(), 1), ttlMs)
  return { state: 'live', ownerId, remainingMs }
}

/** The session as last seen here, or else as stored. Dead ones are refused by every transaction. */
export async function requireSession(state: EtcdState, sessionId: string): Promise<SeenSession> {
  const session = state.sessions.get(sessionId) ?? (await readSession(state, sessionId))
  if (session !== undefined) return session
  throw new SessionDeadError(await deadState(state, sessionId))
}

/** The record hangs on the carrier, so it outlives the marker until the carrier is swept. */
export async function deadState(
  state: EtcdState,
  sessionId: string,
): Promise<'expired' | 'unknown'> {
  state.sessions.delete(sessionId)
  const key = Buffer.from(state.keys.sessionRecord(sessionId))
  const { items } = await state.client.range({ key })
  return items.length > 0 ? 'expired' : 'unknown'
}

async function readSession(state: EtcdState, sessionId: string): Promise<SeenSession | undefined> {
  const { items } = await state.client.range({ key: Buffer.from(state.keys.session(sessionId)) })
  return rememberStored(state, sessionId, items[0])
}

function rememberStored(
  state: EtcdState,
  sessionId: string,
  stored: KeyValue | undefined,
): SeenSession | undefined {
  if (stored !== undefined) {
    const kept = state.sessions.get(sessionId)?.carrierKeptNanos ?? 0n
    return remember(state, sessionId, markerRecordOf(stored), stored.modRevision, kept)
  }
  state.sessions.delete(sessionId)
  return undefined
}

function remember(
  state: EtcdState,
  sessionId: string,
  marker: MarkerRecord,
  markerRevision: bigint,
  carrierKeptNanos: bigint = state.clock.monotonicNanos(),
): SeenSession {
  const session = { markerRevision, marker, carrierKeptNanos }
  state.sessions.set(sessionId, session)
  return session
}

function markerOf(state: EtcdState, ownerId: string, carrier: string, ttlMs: number): MarkerRecord {
  return { ownerId, carrier, ttlMs, expiresAtMs: state.nowMs() + ttlMs }
}

function carrierSeconds(sessionTtlMs: number): number {
  return Math.max(CARRIER_SECONDS, Math.ceil((sessionTtlMs * 4) / 1_000))
}
