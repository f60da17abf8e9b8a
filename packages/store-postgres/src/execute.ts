import type { Clock, Timer } from '@dlock/system'
import type { PgPool, PgPoolClient, PgQuery, PgTypes } from './driver-shape.ts'
import type { Statement } from './statement.ts'
import { StatementFailure, timedOut, translate } from './translate-error.ts'

export type Row = readonly (string | null)[]

export interface ExecutorOptions {
  readonly pool: PgPool
  readonly clock: Clock
  /** How long a call may take, from its start, whatever the server does. */
  readonly callTimeoutMs: number
  readonly prepared: boolean
  readonly onWarning: (message: string) => void
  readonly onDriverError: (error: unknown, statement: string) => void
}

/** Numbers, tokens and dates are read by whoever asked, from the text that the server sent. */
const AS_TEXT: PgTypes = { getTypeParser: () => (text) => text }

/**
 * Runs one statement on a connection of the pool, within a deadline.
 *
 * The server bounds the wait for row locks (the statement's own `lock_timeout`), which is all that
 * these statements ever wait for. The clock here bounds everything else. A connection that did not
 * answer in time is closed: what it may still answer belongs to nobody.
 */
export class Executor {
  readonly #options: ExecutorOptions
  readonly #callTimeoutNanos: bigint
  #prepared: boolean

  constructor(options: ExecutorOptions) {
    this.#options = options
    this.#callTimeoutNanos = BigInt(options.callTimeoutMs) * 1_000_000n
    this.#prepared = options.prepared
  }

  get clock(): Clock {
    return this.#options.clock
  }

  get callTimeoutMs(): number {
    return this.#options.callTimeoutMs
  }

  /** The limit on lock waits of a call that makes one statement, as that statement's parameter. */
  lockTimeout(): string {
    return String(lockWaitMs(this.callTimeoutMs))
  }

  /** The deadline of a call that starts now, by the monotonic clock. */
  deadline(): bigint {
    return this.#options.clock.monotonicNanos() + this.#callTimeoutNanos
  }

  /**
   * The call's own statement: its last parameter is the limit on lock waits, if it has any.
   *
   * @throws ContentionError, NotLeaderError
   */
  async run(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]> {
    try {
      return await this.attempt(statement, values, this.deadline())
    } catch (failure) {
      throw toldOf(failure)
    }
  }

  /** As `run`, where the caller needs to know what became of a statement that failed. */
  async attempt(
    statement: Statement,
    values: readonly unknown[],
    untilNanos: bigint,
  ): Promise<readonly Row[]> {
    try {
      return await this.#attemptOnce(statement, values, untilNanos)
    } catch (failure) {
      if (!this.#prepared || !mixedUp(failure)) throw failure
      // It was refused before it ran, so it may be sent again.
      this.#prepared = false
      this.#options.onWarning(
        'PostgreSQL is behind a pooler that mixes up prepared statements: going on without them, ' +
          'at some cost. Set preparedStatements to false, or use PgBouncer 1.21 or newer with ' +
          'max_prepared_statements.',
      )
      return this.#attemptOnce(statement, values, untilNanos)
    }
  }

  #attemptOnce(
    { name, text }: Statement,
    values: readonly unknown[],
    untilNanos: bigint,
  ): Promise<readonly Row[]> {
    const query: PgQuery = {
      ...(this.#prepared ? { name } : {}),
      text,
      values: [...values],
      rowMode: 'array',
      types: AS_TEXT,
    }
    return this.#onConnection(name, query, untilNanos)
  }

  /**
   * Several statements without parameters, in one transaction.
   *
   * @throws ContentionError, NotLeaderError
   */
  async runScript(text: string): Promise<void> {
    try {
      await this.#onConnection('script', { text }, this.deadline())
    } catch (failure) {
      throw toldOf(failure)
    }
  }

  async #onConnection(name: string, query: PgQuery, untilNanos: bigint): Promise<readonly Row[]> {
    const { pool, onDriverError } = this.#options
    let sent = false
    const alarm = this.#setAlarm(untilNanos, () => timedOut(sent ? 'unknown' : 'not-applied'))
    const connecting = pool.connect()
    let client: PgPoolClient | undefined
    let failure: StatementFailure | undefined
    try {
      client = await Promise.race([connecting, alarm.rings])
      // Without a listener, a connection that breaks between two answers would end the process.
      // The statement in flight is told as well, which is enough.
      client.on('error', ignore)
      sent = true
      const result = await Promise.race([client.query(query), alarm.rings])
      return result.rows as Row[]
    } catch (error) {
      if (!(error instanceof StatementFailure)) onDriverError(error, name)
      failure = error instanceof StatementFailure ? error : translate(error, sent)
      throw failure
    } finally {
      alarm.cancel()
      // The pool may still come up with a connection, when nobody waits for it any more.
      if (client === undefined) connecting.then((late) => late.release()).catch(ignore)
      client?.removeListener('error', ignore)
      client?.release(failure?.breaksConnection ?? false)
    }
  }

  #setAlarm(
    untilNanos: bigint,
    failure: () => StatementFailure,
  ): { readonly rings: Promise<never>; cancel(): void } {
    const { clock } = this.#options
    const leftMs = Number(untilNanos - clock.monotonicNanos()) / 1_000_000
    let timer: Timer | undefined
    const rings = new Promise<never>((_, reject) => {
      timer = clock.setTimer(leftMs, () => reject(failure()), { keepAlive: true })
    })
    return { rings, cancel: () => timer?.cancel() }
  }
}

/** So that the server's own answer, which says that nothing was changed, comes before the deadline. */
export function lockWaitMs(leftMs: number): number {
  return Math.max(1, Math.floor(leftMs * 0.9))
}

/** What the caller of the store is told. */
export function toldOf(failure: unknown): unknown {
  return failure instanceof StatementFailure ? failure.told : failure
}

function mixedUp(failure: unknown): boolean {
  return failure instanceof StatementFailure && failure.forgetsStatements
}

function ignore(): void {}
