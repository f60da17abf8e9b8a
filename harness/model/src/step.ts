import { leastUnseen, mayBeMinted } from './fencing-token.ts'
import type { LockState } from './lock-state.ts'
import type { Operation } from './operation.ts'

/**
 * What is allowed: the whole behaviour of one key, as one pure function. The state after `op` took
 * effect in `state` (the very same object when it changes nothing), or `undefined` when a correct
 * lock cannot have answered so.
 *
 * Expiry may pass at any time from the holder's `until` on, or never be noticed: a service may be
 * late to free a key, never early. So a grant that could be over is treated as over when `op` needs
 * it to be, and as running otherwise.
 *
 * @param latest the latest instant at which `op` can have taken effect, in nanoseconds since the
 *   history's beginning: before it, nothing can have expired that was granted for longer
 */
export function step(state: LockState, op: Operation, latest: number): LockState | undefined {
  // Whoever did not ask, or was told only that it did not happen, proves nothing.
  if (op.type === 'fail' && !op.refused) return state
  switch (op.f) {
    case 'acquire':
      return acquire(state, op, latest)
    case 'renew':
      return renew(state, op, latest)
    case 'release':
      return release(state, op, latest)
    case 'revoke':
      return revoke(state, op, latest)
    case 'close':
      return state.holder?.session === op.session ? without(state) : state
  }
}

type Of<F extends Operation['f']> = Extract<Operation, { readonly f: F }>

function acquire(state: LockState, op: Of<'acquire'>, latest: number): LockState | undefined {
  const { holder } = state
  const own = holder?.session === op.session ? holder : undefined
  if (op.type === 'fail') return holder !== undefined && own === undefined ? state : undefined
  if (op.type === 'info') return own === undefined ? grantUnseen(state, op.session, latest) : state
  if (own !== undefined && !own.unseen && own.token === op.token) {
    return holdUntil(state, op.until) // asked again, the same grant (decision 3)
  }
  const { session, token, until } = op
  const grant = { holder: { session, token, unseen: false, until }, floor: token }
  if (own?.unseen === true && token >= own.token) return grant // its token is told at last
  const free = ended(state, latest)
  return free !== undefined && mayBeMinted(free.floor, token) ? grant : undefined
}

function grantUnseen(state: LockState, session: string, latest: number): LockState | undefined {
  const free = ended(state, latest)
  if (free === undefined) return undefined
  const token = leastUnseen(free.floor)
  // Nobody holds a deadline for it, so nobody can say that it ended too early.
  return { holder: { session, token, unseen: true, until: 0 }, floor: token }
}

function renew(state: LockState, op: Of<'renew'>, latest: number): LockState | undefined {
  const held = holds(state, op.token)
  if (op.type === 'fail') return held ? ended(state, latest) : state
  // An unknown renewal may have prolonged the lease, which then ends later than it must: allowed.
  if (op.type === 'info') return state
  return held ? holdUntil(state, op.until) : undefined
}

function release(state: LockState, op: Of<'release'>, latest: number): LockState | undefined {
  const held = holds(state, op.token)
  if (op.type === 'fail') return held ? ended(state, latest) : state
  if (op.type === 'info') return held ? without(state) : state
  return held ? without(state) : undefined
}

function revoke(state: LockState, op: Of<'revoke'>, latest: number): LockState | undefined {
  const { holder } = state
  if (op.type === 'fail') return ended(state, latest)
  if (holder === undefined) return op.type === 'info' ? state : undefined
  if (op.type === 'info') return { holder: undefined, floor: leastUnseen(state.floor) }
  const hit = holder.unseen ? op.token >= holder.token : op.token === holder.token
  return hit && op.floor > op.token ? { holder: undefined, floor: op.floor } : undefined
}

function holds({ holder }: LockState, token: bigint): boolean {
  return holder !== undefined && !holder.unseen && holder.token === token
}

/** The state with nobody holding, if the grant can be over by `latest`. */
function ended(state: LockState, latest: number): LockState | undefined {
  if (state.holder === undefined) return state
  return latest >= state.holder.until ? without(state) : undefined
}

function without({ floor }: LockState): LockState {
  return { holder: undefined, floor }
}

function holdUntil(state: LockState, until: number): LockState {
  const { holder, floor } = state
  if (holder === undefined || holder.until >= until) return state
  return { holder: { ...holder, until }, floor }
}
