import { checkFencingToken, checkKey, checkOwnerId, checkText } from '@dlock/lock-api'
import { type Clock, type Ids, systemClock, systemIds } from '@dlock/system'
import {
  type Attempt,
  attemptsOf,
  forwardableAttempt,
  insertRefused,
  insertUnresolved,
  type NewAttempt,
  resolveAttempt,
} from './attempt.ts'
import type { Refused } from './fencing-token.ts'
import { inTransaction, type PostgresPool } from './postgres-client.ts'
import { admit, advanceFence } from './postgres-fence.ts'

/** What a `ForwardOnce` is made of. */
export interface ForwardOnceOptions<Request, Reply> {
  /** Of the database with `FENCE_TABLE` and `ATTEMPT_TABLE`, the proxy's own (decision 9). */
  readonly pool: PostgresPool
  /**
   * Presents a request to the system behind, once: see `presentOnce`. It may not try again; when
   * it rejects, the outcome counts as unknown.
   */
  readonly forward: (request: Request) => Promise<Forwarded<Reply>>
  /**
   * The switch of a safety property, for the experiment only (FR-29): with `false` every submission
   * is forwarded, whatever its token and however often. Default `true`.
   */
  readonly fencing?: boolean
  /** Bounds every statement, and with it the wait for a competing submission. Default 3 000. */
  readonly statementTimeoutMs?: number
  readonly clock?: Clock
  readonly ids?: Ids
}

/** What the forwarding came to, as `forward` understood the system's reply. */
export type Forwarded<Reply> =
  | { readonly kind: 'not-presented'; readonly why: string }
  | {
      readonly kind: 'acked' | 'rejected'
      /** What the system calls the effect, if it said so; recorded with the attempt. */
      readonly reference?: string
      readonly reply: Reply
    }
  | { readonly kind: 'unknown'; readonly why: string }

/** One request to forward, and the grant that it is made under. */
export interface Submission<Request> {
  /** The key of the lock that the token belongs to. */
  readonly lockKey: string
  readonly fencingToken: bigint
  /** Names the effect, the same for its whole life: at most one attempt of it is forwarded. */
  readonly idempotencyKey: string
  readonly ownerId: string
  readonly request: Request
}

/** The answer to a submission. Only `acked`, `rejected` and `unknown` reached the system behind. */
export type Submitted<Reply> =
  | { readonly kind: 'fenced-out'; readonly refused: Refused }
  | { readonly kind: 'duplicate'; readonly earlier: Attempt }
  | { readonly kind: 'not-presented'; readonly why: string }
  | { readonly kind: 'acked' | 'rejected'; readonly attemptId: string; readonly reply: Reply }
  | { readonly kind: 'unknown'; readonly attemptId: string; readonly why: string }

type Admission =
  | { readonly kind: 'admitted' }
  | Extract<Submitted<never>, { readonly kind: 'fenced-out' | 'duplicate' | 'not-presented' }>

/**
 * A guard for a system that can neither compare tokens nor remember requests. In this order and no
 * other:
 *
 * 1. The token is above the key's durable high-water mark, which is raised in the same transaction;
 *    else the attempt is recorded as FENCED and nothing is forwarded (FR-17).
 * 2. The idempotency key has no earlier forwardable attempt: a unique index decides (FR-18).
 * 3. The attempt is committed, UNRESOLVED, before a connection is opened (FR-19).
 * 4. It is forwarded once and its outcome recorded. No retry, no second socket (FR-20).
 *
 * Killed between any two steps it leaves either no attempt and no request, or an attempt that says
 * "unknown" for ever: it never forwards again, because it remembers before it acts. What it cannot
 * do is find out what happened; that takes the system's own evidence.
 *
 * Mark and attempts live in PostgreSQL because a mark in memory is forgotten by a restart, doubled
 * by a second replica and stale in a cache. Any number of replicas may share one database.
 */
export class ForwardOnce<Request, Reply> {
  readonly #pool: PostgresPool
  readonly #forward: (request: Request) => Promise<Forwarded<Reply>>
  readonly #fencing: boolean
  readonly #statementTimeoutMs: number
  readonly #clock: Clock
  readonly #ids: Ids

  constructor(options: ForwardOnceOptions<Request, Reply>) {
    this.#pool = options.pool
    this.#forward = options.forward
    this.#fencing = options.fencing ?? true
    this.#statementTimeoutMs = options.statementTimeoutMs ?? 3_000
    this.#clock = options.clock ?? systemClock
    this.#ids = options.ids ?? systemIds
  }

  /** Decides about one submission and, when it is admitted, forwards it. Rejects on bad input only. */
  async submit(submission: Submission<Request>): Promise<Submitted<Reply>> {
    checkKey(submission.lockKey, 'lockKey')
    checkFencingToken(submission.fencingToken)
    checkText(submission.idempotencyKey, 'idempotencyKey')
    checkOwnerId(submission.ownerId)
    const attempt: NewAttempt = { attemptId: this.#ids.uuid(), ...submission }
    const admission = await this.#admit(attempt)
    if (admission.kind !== 'admitted') return admission
    return this.#present(attempt.attemptId, submission.request)
  }

  /** Every attempt of an idempotency key, oldest first, the refused ones too. */
  attempts(idempotencyKey: string): Promise<readonly Attempt[]> {
    return this.#transaction((client) => attemptsOf(client, idempotencyKey))
  }

  /**
   * Raises the key's mark to `floor`; see `advanceFence`. What the same caller then reads from
   * `attempts` is final for every token up to the floor: no older holder can add to it (P-27).
   */
  advance(lockKey: string, floor: bigint, highestToken?: bigint): Promise<bigint> {
    return this.#transaction((client) => advanceFence(client, lockKey, floor, highestToken))
  }

  /** Steps 1 to 3, one transaction. When it fails, nothing was presented by this call. */
  async #admit(attempt: NewAttempt): Promise<Admission> {
    try {
      return await this.#transaction(async (client) => {
        const verdict = this.#fencing
          ? await admit(client, attempt.lockKey, attempt.fencingToken)
          : ({ passed: true } as const)
        if (!verdict.passed) {
          const own = await forwardableAttempt(client, attempt.idempotencyKey)
          // The same grant asking for the same effect again is no stale holder (decision 4).
          if (own?.fencingToken === attempt.fencingToken && own.ownerId === attempt.ownerId) {
            return this.#duplicate(client, attempt, own)
          }
          await insertRefused(client, attempt, 'FENCED', `the mark is ${verdict.storedToken}`)
          return { kind: 'fenced-out', refused: verdict }
        }
        if (await insertUnresolved(client, attempt, this.#fencing)) return { kind: 'admitted' }
        const earlier = await forwardableAttempt(client, attempt.idempotencyKey)
        if (earlier !== undefined) return this.#duplicate(client, attempt, earlier)
        return { kind: 'not-presented', why: 'an earlier attempt was just found not presented' }
      })
    } catch {
      return { kind: 'not-presented', why: 'the attempt could not be recorded' }
    }
  }

  async #duplicate(
    client: Parameters<typeof insertRefused>[0],
    attempt: NewAttempt,
    earlier: Attempt,
  ): Promise<Admission> {
    await insertRefused(client, attempt, 'DUPLICATE', `of attempt ${earlier.attemptId}`)
    return { kind: 'duplicate', earlier }
  }

  /** Step 4. What could not be recorded did not become known: its answer is "unknown" too. */
  async #present(attemptId: string, request: Request): Promise<Submitted<Reply>> {
    const forwarded = await this.#forwardOnce(request)
    const recorded = await this.#record(attemptId, forwarded)
    if (forwarded.kind === 'not-presented') return forwarded
    if (forwarded.kind === 'unknown') return { kind: 'unknown', attemptId, why: forwarded.why }
    if (!recorded) return { kind: 'unknown', attemptId, why: 'the outcome could not be recorded' }
    return { kind: forwarded.kind, attemptId, reply: forwarded.reply }
  }

  async #forwardOnce(request: Request): Promise<Forwarded<Reply>> {
    try {
      return await this.#forward(request)
    } catch {
      return { kind: 'unknown', why: 'the forwarder failed' }
    }
  }

  /** Recording is repeated, within a bound, because it may be; forwarding never is. */
  async #record(attemptId: string, forwarded: Forwarded<Reply>): Promise<boolean> {
    const outcome = OUTCOME[forwarded.kind]
    const reference = 'reference' in forwarded ? forwarded.reference : undefined
    const detail = 'why' in forwarded ? forwarded.why : undefined
    for (let tries = 1; ; tries += 1) {
      try {
        await this.#transaction((client) =>
          resolveAttempt(client, attemptId, outcome, reference, detail),
        )
        return true
      } catch {
        if (tries === RECORD_TRIES) return false
        await this.#pause(RECORD_PAUSE_MS * tries)
      }
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.setTimer(ms, resolve, { keepAlive: true })
    })
  }

  #transaction<T>(work: Parameters<typeof inTransaction<T>>[2]): Promise<T> {
    return inTransaction(this.#pool, this.#statementTimeoutMs, work)
  }
}

const RECORD_TRIES = 4
const RECORD_PAUSE_MS = 100

const OUTCOME = {
  acked: 'ACKED',
  rejected: 'REJECTED',
  unknown: 'TIMEOUT',
  'not-presented': 'NOT_PRESENTED',
} as const
