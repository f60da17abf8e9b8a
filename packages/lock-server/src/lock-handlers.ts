import { type LockHandle, RetryableLockError } from '@dlock/lock-api'
import {
  Failure,
  formatFencingToken,
  formatTime,
  type LockView,
  parseFencingToken,
  type Renewed,
} from '@dlock/protocol'
import type { CallContext } from './call.ts'
import {
  checkOwner,
  type Desk,
  type Handlers,
  lockTtlMs,
  note,
  notYours,
  shuttingDown,
} from './handlers.ts'
import { lockViewOf } from './views.ts'

export function lockHandlers(desk: Desk): Handlers<'acquire' | 'renew' | 'release' | 'inspect'> {
  const { engine } = desk
  return {
    acquire: {
      role: 'client',
      span: 'lock.acquire',
      async answer(context, { key, sessionId, ttlMillis, waitMillis = 0 }) {
        const ttlMs = lockTtlMs(desk, ttlMillis)
        await checkOwner(desk, context, sessionId)
        const { call, ownerId } = context
        if (desk.isClosing()) throw shuttingDown()
        call.isWaiting = waitMillis > 0
        const handle = await engine
          .forSession(sessionId)
          .acquire(key, ownerId, ttlMs, waitMillis, call)
        if (handle === undefined) throw await contended(desk, key)
        const fencingToken = tellToken(context, handle.fencingToken)
        note(desk, context, 'lock_granted', { key, fencingToken })
        const granted = engine.grantedTtlMs(ttlMs)
        return {
          key,
          ownerId,
          sessionId,
          fencingToken,
          ttlMillis: granted,
          acquiredAt: formatTime(new Date(handle.serverExpiry.getTime() - granted)),
          expiresAt: formatTime(handle.serverExpiry),
        }
      },
    },

    renew: {
      role: 'client',
      span: 'lock.renew',
      async answer(context, { key, sessionId, fencingToken, ttlMillis }) {
        const token = checkedToken(fencingToken)
        tellToken(context, token)
        const ttlMs = lockTtlMs(desk, ttlMillis)
        await checkOwner(desk, context, sessionId)
        const handle = await engine.renewGrant(sessionId, key, token, ttlMs)
        if (handle === undefined) throw lost(key, token)
        return renewedGrant(desk, handle, ttlMs)
      },
    },

    release: {
      role: 'client',
      span: 'lock.release',
      async answer(context, { key, fencingToken, sessionId }) {
        const token = checkedToken(fencingToken)
        tellToken(context, token)
        await checkMayRelease(desk, context, key, token, sessionId)
        const released = await engine.releaseGrant(sessionId, key, token)
        if (!released) throw lost(key, token)
        note(desk, context, 'lock_released', { key, fencingToken })
        return {}
      },
    },

    inspect: {
      role: 'viewer',
      async answer(_, { key }): Promise<LockView> {
        const info = await engine.inspect(key)
        return info === undefined ? { held: false, key } : lockViewOf(info)
      },
    },
  }
}

export function renewedGrant({ engine }: Desk, handle: LockHandle, ttlMs: number): Renewed {
  return {
    key: handle.key,
    fencingToken: formatFencingToken(handle.fencingToken),
    ttlMillis: engine.grantedTtlMs(ttlMs),
    expiresAt: formatTime(handle.serverExpiry),
  }
}

/** The token of an input that its schema has accepted. */
export function checkedToken(text: string): bigint {
  const token = parseFencingToken(text)
  if (token === undefined) throw new TypeError('an unchecked token reached a handler')
  return token
}

/**
 * (key, token) names one grant, and only that one is deleted (FR-05); whose it is decides who may.
 * A caller that sends its session proves itself by it. One that does not costs a read: the owner of
 * a (key, token) never changes, so that even a stale answer is right about it, and a grant that the
 * read does not show is no longer there to be released.
 */
async function checkMayRelease(
  desk: Desk,
  context: CallContext,
  key: string,
  token: bigint,
  sessionId: string | undefined,
): Promise<void> {
  if (sessionId !== undefined) return checkOwner(desk, context, sessionId)
  const info = await desk.engine.inspect(key)
  if (info?.fencingToken === token && info.ownerId !== context.ownerId) throw notYours('grant')
}

function lost(key: string, token: bigint): Failure {
  return new Failure(
    'LOCK_LOST',
    `the grant of ${JSON.stringify(key)} with token ${token} is gone: released, expired or revoked`,
    { details: { key, fencingToken: formatFencingToken(token) } },
  )
}

/** Who holds the key is news for people, and no reason to fail with something else. */
async function contended({ engine }: Desk, key: string): Promise<Failure> {
  const info = await engine.inspect(key).catch((error: unknown) => {
    if (error instanceof RetryableLockError) return undefined
    throw error
  })
  return new Failure('LOCK_CONTENDED', `another holds ${JSON.stringify(key)}`, {
    details: info && { holder: info.ownerId, expiresAt: formatTime(info.expiresAt) },
  })
}

/** One token tells the story of one grant across processes. */
function tellToken({ trace }: CallContext, token: bigint): string {
  const fencingToken = formatFencingToken(token)
  trace.span?.setAttribute('lock.token', fencingToken)
  return fencingToken
}
