import {
  checkFencingToken,
  checkKey,
  checkTtlMs,
  grantedTtlMs,
  type LockHandle,
} from '@dlock/lock-api'
import { EtcdError } from './client/etcd-error.ts'
import { exists, get, put, unchangedSince } from './client/txn.ts'
import { type EtcdState, type SeenGrant, TTL_BOUNDS } from './etcd-state.ts'
import { encode } from './records.ts'

// Each try loses only to one that another process won.
const TRIES = 16

export async function extend(
  state: EtcdState,
  key: string,
  fencingToken: bigint,
  ttlMs: number,
): Promise<LockHandle | undefined> {
  checkKey(key)
  checkFencingToken(fencingToken)
  checkTtlMs(ttlMs)
  await state.epoch.requireServing()
  return await state.inTurn(key, () => extendNow(state, key, fencingToken, ttlMs))
}

async function extendNow(
  state: EtcdState,
  key: string,
  fencingToken: bigint,
  ttlMs: number,
): Promise<LockHandle | undefined> {
  let grant = state.grants.get(key)
  if (grant?.fencingToken !== fencingToken) grant = await seeGrant(state, key)
  for (let tries = 0; tries < TRIES; tries += 1) {
    if (grant?.fencingToken !== fencingToken) return undefined
    const sentNanos = state.clock.monotonicNanos()
    // Never shorter than it was; what is left of it cannot be asked of etcd reliably.
    const granted = Math.max(grantedTtlMs(ttlMs, TTL_BOUNDS), grant.ttlMs)
    const moved = await moveMarker(state, key, grant, granted)
    if (moved === 'moved') return state.handleOf(key, grant, sentNanos, granted)
    grant = moved
  }
  throw new EtcdError('unknown', 'the lease was extended by others at the same time')
}

/**
 * The lease's marker moves to a fresh slot while the lock is the same, the marker is where it was
 * last seen, and the session lives. Without the compare on the marker, a delayed duplicate of an
 * older extension would move it back to a slot that ends sooner.
 *
 * @returns what the grant is now when the guess was wrong; `undefined` when it is gone
 */
async function moveMarker(
  state: EtcdState,
  key: string,
  grant: SeenGrant,
  ttlMs: number,
): Promise<'moved' | SeenGrant | undefined> {
  const { keys } = state
  try {
    const slot = await state.slots.leaseFor(ttlMs)
    const answer = await state.proposals.submit(
      {
        compare: [
          unchangedSince(keys.lock(key), grant.lockRevision),
          unchangedSince(keys.ttl(key), grant.ttlRevision),
          exists(keys.session(grant.sessionId)),
        ],
        success: [put(keys.ttl(key), encode(state.ttlRecord(ttlMs)), slot)],
        failure: [get(keys.lock(key)), get(keys.ttl(key)), get(keys.session(grant.sessionId))],
      },
      [key],
    )
    if (answer.succeeded) {
      state.grants.set(key, { ...grant, ttlRevision: answer.revision, ttlMs })
      return 'moved'
    }
    const [lock, ttl, session] = [answer.got(0), answer.got(1), answer.got(2)]
    if (lock !== undefined && ttl !== undefined && session !== undefined) {
      return state.seen(key, lock, ttl)
    }
    state.grants.delete(key)
    return undefined
  } catch (error) {
    if (!(error instanceof EtcdError && error.kind === 'lease-gone')) throw error
    state.slots.forget(ttlMs)
    return grant
  }
}

/** The grant as stored, whether or not its session lives. */
export async function seeGrant(state: EtcdState, key: string): Promise<SeenGrant | undefined> {
  const answer = await state.client.txn({
    compare: [],
    success: [get(state.keys.lock(key)), get(state.keys.ttl(key))],
    failure: [],
  })
  const [lock, ttl] = [answer.got(0), answer.got(1)]
  return lock === undefined || ttl === undefined ? undefined : state.seen(key, lock, ttl)
}
