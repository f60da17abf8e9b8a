import { leastUnseen, mayBeMinted } from './fencing-token.ts'
import type { Holder, LockState } from './lock-state.ts'
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
      return state.holder?.session === op.session ? close(state, latest) : state
  }
}

type Of<F extends Operation['f']> = Extract<Operation, { readonly f: F }>

function acquire(state: LockState, op: Of<'acquire'>, latest: number): LockState | undefined {
  const { holder } = state
  const live = holder?.over === false ? holder : undefined
  const own = live?.session === op.session ? live : undefined
  if (op.type === 'fail') return live !== undefined && own === undefined ? state : undefined
  if (op.type === 'info') {
    // Its own live grant again, of which nothing is new; or another, once that one can be over.
    return grantUnseen(state, op.session, latest) ?? (own === undefined ? undefined : state)
  }
  if (own !== undefined && !own.unseen && own.token === op.token) {
    return holdUntil(state, own, op.until) // asked again, the same grant (decision 3)
  }
  const { session, token, until } = op
  const grant = { holder: { session, token, unseen: false, until, over: false }, floor: token }
  if (own?.unseen === true && token >= own.token) return grant // its token is told at last
  return isFree(state, latest) && mayBeMinted(state.floor, token) ? grant : undefined
}

function grantUnseen(state: LockState, session: string, latest: number): LockState | undefined {
  if (!isFree(state, latest)) return undefined
  const token = leastUnseen(state.floor)
  // Nobody holds a deadline for it, so nobody can say that it ended too early.
  return { holder: { session, token, unseen: true, until: 0, over: false }, floor: token }
}

function renew(state: LockState, op: Of<'renew'>, latest: number): LockState | undefined {
  const holder = holderOf(state, op.token)
  if (op.type === 'fail') return holder === undefined ? state : over(state, latest)
  // An unknown renewal may have prolonged the lease, which then ends later than it must: allowed.
  if (op.type === 'info') return state
  return holder?.over === false ? holdUntil(state, holder, op.until) : undefined
}

/** A grant that is over can be released while its record lies there: the comparison is of tokens. */
function release(state: LockState, op: Of<'release'>, latest: number): LockState | undefined {
  const holder = holderOf(state, op.token)
  if (holder === undefined) return op.type === 'ok' ? undefined : state
  return op.type !== 'fail' || isFree(state, latest) ? without(state) : undefined
}

function revoke(state: LockState, op: Of<'revoke'>, latest: number): LockState | undefined {
  const { holder } = state
  if (op.type === 'fail') return over(state, latest)
  if (holder === undefined || holder.over) return op.type === 'info' ? state : undefined
  if (op.type === 'info') return { holder: undefined, floor: leastUnseen(state.floor) }
  const isHit = holder.unseen ? op.token >= holder.token : op.token === holder.token
  return isHit && op.floor > op.token ? { holder: undefined, floor: op.floor } : undefined
}

/** It takes the live grant along. One that was over is none of its business: the record may stay. */
function close(state: LockState, latest: number): LockState {
  return over(state, latest) ?? without(state)
}

/** Whose grant has this token, live or not. */
function holderOf({ holder }: LockState, token: bigint): Holder | undefined {
  return holder !== undefined && !holder.unseen && holder.token === token ? holder : undefined
}

/** Nobody's grant need be running at `latest`. */
function isFree({ holder }: LockState, latest: number): boolean {
  return holder === undefined || holder.over || latest >= holder.until
}

/** The state in which whatever grant there was is known to be over, if it can be by `latest`. */
function over(state: LockState, latest: number): LockState | undefined {
  const { holder, floor } = state
  if (holder === undefined || holder.over) return state
  return isFree(state, latest) ? { holder: { ...holder, over: true }, floor } : undefined
}

function without({ floor }: LockState): LockState {
  return { holder: undefined, floor }
}

function holdUntil(state: LockState, holder: Holder, until: number): LockState {
  return holder.until >= until ? state : { holder: { ...holder, until }, floor: state.floor }
}
