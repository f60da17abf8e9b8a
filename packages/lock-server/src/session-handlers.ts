import { RetryableLockError, SessionDeadError } from '@dlock/lock-api'
import {
  Failure,
  formatTime,
  type Heartbeat,
  type HeartbeatInput,
  MAX_SESSION_TTL_MS,
  type Renewal,
  type Renewed,
} from '@dlock/protocol'
import { checkOwner, type Desk, type Handlers, lockTtlMs, note, sessionTtlMs } from './handlers.ts'
import { checkedToken, renewedGrant } from './lock-handlers.ts'

export function sessionHandlers(
  desk: Desk,
): Handlers<'openSession' | 'heartbeat' | 'closeSession'> {
  const { engine } = desk
  const leases = new SessionLeases()
  return {
    openSession: {
      role: 'client',
      async answer(context, input) {
        if (input.ownerId !== context.ownerId) {
          throw new Failure('FORBIDDEN', "a session's ownerId is the caller's own name")
        }
        const ttlMs = sessionTtlMs(desk, input.ttlMillis ?? desk.leases.defaultSessionTtlMs)
        const sessionId = await engine.openSession(input.ownerId, ttlMs)
        leases.remember(sessionId, ttlMs)
        note(desk, context, 'session_opened', {})
        const ttlMillis = engine.grantedTtlMs(ttlMs)
        return { sessionId, ownerId: input.ownerId, ttlMillis, expiresAt: fromNow(desk, ttlMillis) }
      },
    },

    heartbeat: {
      role: 'client',
      async answer(context, input) {
        const { sessionId, renew = [] } = input
        const longest = Math.min(MAX_SESSION_TTL_MS, desk.leases.maxLockTtlMs)
        const ttlMs = sessionTtlMs(desk, input.ttlMillis ?? leases.of(sessionId) ?? longest)
        const due = renew.map((renewal, index) => checkedRenewal(desk, renewal, index))
        await checkOwner(desk, context, sessionId)
        // All at once, so that a store which groups concurrent calls makes few statements of them.
        const [isAlive, heldLockCount, ...renewals] = await Promise.all([
          engine.heartbeat(sessionId, ttlMs),
          unlessUnknown(engine.locksOf(sessionId).then((keys) => keys.size)),
          ...due.map((renewal) => renewOne(desk, sessionId, renewal)),
        ])
        if (!isAlive) {
          leases.forget(sessionId)
          throw await deadSession(desk, sessionId)
        }
        leases.remember(sessionId, ttlMs)
        return answered(desk, input, ttlMs, heldLockCount, renewals)
      },
    },

    closeSession: {
      role: 'client',
      async answer(context, { sessionId }) {
        await checkOwner(desk, context, sessionId)
        leases.forget(sessionId)
        await engine.closeSession(sessionId)
        note(desk, context, 'session_closed', {})
        return {}
      },
    },
  }
}

/** `undefined`: nothing is known, and the heartbeat goes on without it. */
type RenewalOutcome = Renewed | 'lost' | undefined

interface DueRenewal {
  readonly key: string
  readonly token: bigint
  readonly ttlMs: number
}

/** Before anything is done, so that a heartbeat is refused as a whole or not at all. */
function checkedRenewal(
  desk: Desk,
  { key, fencingToken, ttlMillis }: Renewal,
  index: number,
): DueRenewal {
  const ttlMs = lockTtlMs(desk, ttlMillis, `renew.${index}.ttlMillis`)
  return { key, token: checkedToken(fencingToken), ttlMs }
}

function renewOne(
  desk: Desk,
  sessionId: string,
  { key, token, ttlMs }: DueRenewal,
): Promise<RenewalOutcome> {
  return unlessUnknown(
    desk.engine
      .renewGrant(sessionId, key, token, ttlMs)
      .then((handle) => (handle === undefined ? 'lost' : renewedGrant(desk, handle, ttlMs))),
  )
}

/**
 * What a part of a heartbeat found out, or `undefined` when the store could not say: a heartbeat
 * that reached the store must not be reported as failed for the sake of a neighbour.
 */
async function unlessUnknown<T>(part: Promise<T>): Promise<T | undefined> {
  try {
    return await part
  } catch (error) {
    if (error instanceof RetryableLockError) return undefined
    throw error
  }
}

function answered(
  desk: Desk,
  input: HeartbeatInput,
  ttlMs: number,
  heldLockCount: number | undefined,
  renewals: readonly RenewalOutcome[],
): Heartbeat {
  const ttlMillis = desk.engine.grantedTtlMs(ttlMs)
  const lost = (input.renew ?? []).filter((_, index) => renewals[index] === 'lost')
  return {
    sessionId: input.sessionId,
    ttlMillis,
    expiresAt: fromNow(desk, ttlMillis),
    serverTime: formatTime(desk.clock.now()),
    ...(heldLockCount !== undefined && { heldLockCount }),
    renewed: renewals.filter((outcome) => outcome !== undefined && outcome !== 'lost'),
    lost: lost.map(({ key, fencingToken }) => ({ key, fencingToken })),
  }
}

/** Why a heartbeat found no session. The cache that said otherwise has been corrected by it. */
async function deadSession({ engine }: Desk, sessionId: string): Promise<SessionDeadError> {
  const session = await engine.describeSession(sessionId)
  return new SessionDeadError(session.state === 'expired' ? 'expired' : 'unknown')
}

/** For people: this server's wall clock. */
function fromNow({ clock }: Desk, ttlMs: number): string {
  return formatTime(new Date(clock.now().getTime() + ttlMs))
}

/**
 * The lease that each session was opened or last kept alive with, for heartbeats that name none.
 * Bounded: above `limit` the oldest is forgotten, and gets the longest.
 */
class SessionLeases {
  readonly #ttlMs = new Map<string, number>()
  readonly #limit = 100_000

  of(sessionId: string): number | undefined {
    return this.#ttlMs.get(sessionId)
  }

  remember(sessionId: string, ttlMs: number): void {
    this.#ttlMs.delete(sessionId)
    this.#ttlMs.set(sessionId, ttlMs)
    if (this.#ttlMs.size <= this.#limit) return
    const [oldest] = this.#ttlMs.keys()
    if (oldest !== undefined) this.#ttlMs.delete(oldest)
  }

  forget(sessionId: string): void {
    this.#ttlMs.delete(sessionId)
  }
}
