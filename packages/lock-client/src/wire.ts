import {
  ContentionError,
  FencedOutError,
  type LockHandle,
  LockInfo,
  SessionDeadError,
} from '@dlock/lock-api'
import {
  type ErrorCode,
  errorOf,
  formatFencingToken,
  type Heartbeat,
  type InputOf,
  MAX_BODY_BYTES,
  MAX_RENEWALS_PER_HEARTBEAT,
  MAX_WAIT_MS,
  type Operation,
  type OperationName,
  type OutputOf,
  operations,
  parseFencingToken,
  parseTime,
  type Renewal,
} from '@dlock/protocol'
import type { Channel, WireAnswer, WireCall } from './channel.ts'
import {
  acquireHop,
  closeSessionHop,
  type Hop,
  inspectHop,
  openSessionHop,
  releaseHop,
  revokeHop,
  timeoutMsOf,
} from './hops.ts'
import type {
  AcquireRequest,
  Grant,
  GrantToRenew,
  HeartbeatAnswer,
  HeartbeatPatience,
  OpenedSession,
  RevokeOutcome,
  Transport,
} from './transport.ts'

/** A revocation is made in its operator's name, which the input has; whoever calls is no owner. */
const CALLER = 'operator'

/** Every call in the words of the protocol, over whichever channel there is. */
export class WireTransport implements Transport {
  readonly longestWaitMs: number = MAX_WAIT_MS
  readonly #channel: Channel

  constructor(channel: Channel) {
    this.#channel = channel
  }

  async openSession(ownerId: string, ttlMs: number): Promise<OpenedSession> {
    const input = { ownerId, ttlMillis: ttlMs }
    const opened = await this.#call('openSession', openSessionHop, ownerId, input)
    return { sessionId: opened.sessionId, ownerId, ttlMs: opened.ttlMillis }
  }

  async heartbeat(
    session: OpenedSession,
    grants: readonly GrantToRenew[],
    patience: HeartbeatPatience,
  ): Promise<HeartbeatAnswer> {
    const beats = inRequests(grants.map(renewalOf)).map((renew) =>
      this.#beat(session, renew, patience),
    )
    const outcomes = await Promise.allSettled(beats)
    const answers = outcomes.flatMap((outcome) =>
      outcome.status === 'fulfilled' ? [outcome.value] : [],
    )
    const [first] = answers
    // One that says "dead" is right about all; of several answers, each says its own part.
    for (const outcome of outcomes) {
      const failed = outcome.status === 'rejected'
      if (failed && (first === undefined || outcome.reason instanceof SessionDeadError)) {
        throw outcome.reason
      }
    }
    if (first === undefined) throw new TypeError('a heartbeat is at least one request')
    return {
      ttlMs: first.ttlMillis,
      renewed: answers.flatMap(({ renewed }) =>
        renewed.map((grant) => ({ key: grant.key, ...grantOf(grant) })),
      ),
      lost: answers.flatMap(({ lost }) =>
        lost.map(({ key, fencingToken }) => ({ key, fencingToken: tokenOf(fencingToken) })),
      ),
    }
  }

  async closeSession({ sessionId, ownerId }: OpenedSession): Promise<void> {
    await this.#call('closeSession', closeSessionHop, ownerId, { sessionId })
  }

  async acquire(
    { sessionId, ownerId }: OpenedSession,
    { key, ttlMs, waitMs, timeoutMs, signal }: AcquireRequest,
  ): Promise<Grant | undefined> {
    const input = { key, sessionId, ttlMillis: ttlMs, waitMillis: waitMs }
    const call = { timeoutMs, signal }
    const granted = await this.#callOr(
      'LOCK_CONTENDED',
      'acquire',
      acquireHop,
      ownerId,
      input,
      call,
    )
    return granted && grantOf(granted)
  }

  async release(handle: LockHandle): Promise<boolean> {
    const { key, sessionId, ownerId } = handle
    const input = { key, sessionId, fencingToken: formatFencingToken(handle.fencingToken) }
    const done = await this.#callOr('LOCK_LOST', 'release', releaseHop, ownerId, input)
    return done !== undefined
  }

  async inspect(key: string): Promise<LockInfo | undefined> {
    const view = await this.#call('inspect', inspectHop, undefined, { key })
    if (!view.held) return undefined
    return new LockInfo(
      key,
      view.ownerId,
      tokenOf(view.fencingToken),
      timeOf(view.acquiredAt),
      timeOf(view.expiresAt),
      view.waiterCount,
    )
  }

  async revoke(
    key: string,
    operator: string,
    reason: string,
    expectedToken: bigint | undefined,
  ): Promise<RevokeOutcome> {
    const expected =
      expectedToken === undefined ? {} : { expectedToken: formatFencingToken(expectedToken) }
    const input = { key, operator, reason, ...expected }
    try {
      const revoked = await this.#callOr('NOT_FOUND', 'revoke', revokeHop, CALLER, input)
      if (revoked === undefined) return { kind: 'not-held' }
      return {
        kind: 'revoked',
        previousToken: tokenOf(revoked.revokedToken),
        newTokenFloor: tokenOf(revoked.newTokenFloor),
        revocationId: revoked.revocationId,
      }
    } catch (error) {
      if (!(error instanceof FencedOutError)) throw error
      return { kind: 'stale', currentToken: error.storedToken }
    }
  }

  close(): Promise<void> {
    return this.#channel.close()
  }

  #beat(
    { sessionId, ownerId, ttlMs }: OpenedSession,
    renew: readonly Renewal[],
    { hop, timeoutMs }: HeartbeatPatience,
  ): Promise<Heartbeat> {
    const input = { sessionId, ttlMillis: ttlMs, renew }
    return this.#call('heartbeat', hop, ownerId, input, { timeoutMs })
  }

  async #call<Name extends OperationName>(
    name: Name,
    hop: Hop,
    ownerId: string | undefined,
    input: InputOf<Name>,
    patience: Patience = {},
  ): Promise<OutputOf<Name>> {
    const answer = await this.#answer(name, hop, ownerId, input, patience)
    if ('error' in answer) throw errorOf(answer.error)
    return outputOf(name, answer.out)
  }

  /** `undefined`: refused with `refusal`, which is a value in the contract. */
  async #callOr<Name extends OperationName>(
    refusal: ErrorCode,
    name: Name,
    hop: Hop,
    ownerId: string,
    input: InputOf<Name>,
    patience: Patience = {},
  ): Promise<OutputOf<Name> | undefined> {
    const answer = await this.#answer(name, hop, ownerId, input, patience)
    if (!('error' in answer)) return outputOf(name, answer.out)
    if (answer.error.code === refusal) return undefined
    throw errorOf(answer.error)
  }

  #answer(
    name: OperationName,
    hop: Hop,
    ownerId: string | undefined,
    input: object,
    patience: Patience,
  ): Promise<WireAnswer> {
    return this.#channel.call({
      timeoutMs: timeoutMsOf(hop),
      ...patience,
      name,
      ownerId,
      input,
      hop,
    })
  }
}

type Patience = Partial<Pick<WireCall, 'timeoutMs' | 'signal'>>

/** An answer that is none of the protocol's says nothing about what happened. */
function outputOf<Name extends OperationName>(name: Name, out: unknown): OutputOf<Name> {
  const { output } = operations[name] as Operation<never, OutputOf<Name>>
  if (output.accepts(out)) return out
  throw unreadable(name)
}

function unreadable(what: string): ContentionError {
  return new ContentionError(`the answer to ${what} could not be read: the call may have happened`)
}

function grantOf(granted: {
  readonly fencingToken: string
  readonly ttlMillis: number
  readonly expiresAt: string
}): Grant {
  return {
    fencingToken: tokenOf(granted.fencingToken),
    ttlMs: granted.ttlMillis,
    serverExpiry: timeOf(granted.expiresAt),
  }
}

function tokenOf(text: string): bigint {
  const token = parseFencingToken(text)
  if (token === undefined) throw unreadable('a call')
  return token
}

function timeOf(text: string): Date {
  const time = parseTime(text)
  if (time === undefined) throw unreadable('a call')
  return time
}

function renewalOf({ handle, ttlMs }: GrantToRenew): Renewal {
  const { key, fencingToken } = handle
  return { key, fencingToken: formatFencingToken(fencingToken), ttlMillis: ttlMs }
}

/** As few requests as the protocol's limits allow; one even when there is nothing to renew. */
function inRequests(renewals: readonly Renewal[]): Renewal[][] {
  let request: Renewal[] = []
  let bytes = 0
  const requests = [request]
  for (const renewal of renewals) {
    const size = Buffer.byteLength(JSON.stringify(renewal)) + 1
    if (request.length === MAX_RENEWALS_PER_HEARTBEAT || bytes + size > ROOM_BYTES) {
      request = []
      bytes = 0
      requests.push(request)
    }
    request.push(renewal)
    bytes += size
  }
  return requests
}

/** What a body has left beside the rest of a heartbeat. */
const ROOM_BYTES = MAX_BODY_BYTES - 1_024
