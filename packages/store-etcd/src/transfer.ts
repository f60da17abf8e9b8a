import {
  ContentionError,
  checkFencingToken,
  checkKey,
  checkOwnerId,
  checkSessionId,
  checkTtlMs,
  grantedTtlMs,
  type NextHolder,
  SessionDeadError,
  type Transfer,
} from '@dlock/lock-api'
import { get, nested, remove, type Txn, unchangedSince } from './client/txn.ts'
import { deleteIfOwner } from './delete-if-owner.ts'
import { type EtcdState, type SeenGrant, TTL_BOUNDS } from './etcd-state.ts'
import { extend, seeGrant } from './extend.ts'
import { tokenOf } from './fencing-token.ts'
import { turnTaken } from './queue.ts'
import { lockRecordOf } from './records.ts'
import { type Attempt, beginAttempt, grantOps, guards, propose, recordGrant } from './try-insert.ts'

const TRIES = 4
const NOTHING: Transfer = { released: false, granted: undefined }

export async function transfer(
  state: EtcdState,
  key: string,
  fencingToken: bigint,
  next: NextHolder,
): Promise<Transfer> {
  checkKey(key)
  checkFencingToken(fencingToken)
  const wanted = {
    key,
    ownerId: checkOwnerId(next.ownerId),
    sessionId: checkSessionId(next.sessionId),
    ttlMs: grantedTtlMs(checkTtlMs(next.ttlMs), TTL_BOUNDS),
  }
  await state.epoch.requireServing()
  let grant = state.grants.get(key)
  if (grant?.fencingToken !== fencingToken) grant = await seeGrant(state, key)
  for (let tries = 0; tries < TRIES; tries += 1) {
    if (grant?.fencingToken !== fencingToken) return NOTHING
    const result = await transferOnce(state, wanted, grant)
    if (result !== 'again') return result
    grant = await seeGrant(state, key)
  }
  throw new ContentionError('the session or the epoch changed while the key was handed over')
}

async function transferOnce(
  state: EtcdState,
  wanted: Pick<Attempt, 'key' | 'ownerId' | 'sessionId' | 'ttlMs'>,
  from: SeenGrant,
): Promise<Transfer | 'again'> {
  const sentNanos = state.clock.monotonicNanos()
  let attempt: Attempt
  try {
    attempt = await beginAttempt(state, wanted)
  } catch (error) {
    if (!(error instanceof SessionDeadError)) throw error
    const released = await deleteIfOwner(state, wanted.key, from.fencingToken)
    return { released, granted: undefined }
  }
  const answer = await propose(state, attempt, handOver(state, attempt, from))
  if (answer === 'again') return 'again'
  if (answer === 'granted-before') return await adopt(state, attempt)
  if (answer.succeeded) {
    const granted = recordGrant(state, attempt, answer.revision, sentNanos)
    return { released: true, granted }
  }
  if (answer.nested(0).succeeded) {
    state.grants.delete(wanted.key)
    // Nothing is wrong with the session: others are before this process in the queue.
    return answer.nested(0).got(3) === undefined
      ? { released: true, granted: undefined }
      : { released: true, granted: undefined, passedOver: true }
  }
  return NOTHING
}

/**
 * Written over, not deleted and written: etcd takes no two writes of one key in one transaction,
 * and nobody who waits elsewhere is woken for a key that is not free.
 */
function handOver(state: EtcdState, attempt: Attempt, from: SeenGrant): Txn {
  const { keys } = state
  const same = unchangedSince(keys.lock(attempt.key), from.lockRevision)
  const index = keys.held(from.sessionId, attempt.key)
  return {
    compare: [...guards(state, attempt), same],
    success: [
      ...grantOps(state, attempt),
      ...(from.sessionId === attempt.sessionId ? [] : [remove(index)]),
    ],
    failure: [
      nested({
        compare: [same],
        success: [
          remove(keys.lock(attempt.key)),
          remove(keys.ttl(attempt.key)),
          remove(index),
          get(keys.session(attempt.sessionId)),
        ],
        failure: [],
      }),
    ],
  }
}

/** The hand-over happened; its answer was lost. */
async function adopt(state: EtcdState, attempt: Attempt): Promise<Transfer> {
  const { items } = await state.client.range({ key: Buffer.from(state.keys.lock(attempt.key)) })
  const [lock] = items
  if (lock === undefined || lockRecordOf(lock).attempt !== attempt.name) {
    return { released: true, granted: undefined }
  }
  turnTaken(state, attempt.key, attempt.name, attempt.ticketSlot, lock.modRevision)
  return {
    released: true,
    granted: await extend(state, attempt.key, tokenOf(lock), attempt.ttlMs),
  }
}
