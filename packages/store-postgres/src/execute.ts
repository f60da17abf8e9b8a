import type { Clock } from '@dlock/system'
import { Deadlines } from './deadlines.ts'
import type { PgPool, PgPoolClient, PgQuery } from './driver-shape.ts'
import type { Statement } from './statement.ts'
import { type Fate, StatementFailure, timedOut, translate } from './translate-error.ts'

/**
 * Every column is text, as the statements say themselves: what the driver would make of a number or
 * a date, and whether it has been told otherwise, does not matter.
 */
export type Row = readonly (string | null)[]

/**
 * Sends one statement.
 *
 * @throws StatementFailure, in time
 */
export type Send = (
  statement: Statement,
  values: (string | null)[],
  untilNanos: bigint,
) => Promise<readonly Row[]>

export interface ExecutorOptions {
  readonly pool: PgPool
  readonly clock: Clock
  /** How long a call may take, from its start, whatever the server does. */
  readonly callTimeoutMs: number
  readonly prepared: boolean
  readonly onWarning: (message: string) => void
  readonly onDriverError: (error: unknown, statement: string) => void
}

/**
 * Runs statements on connections of the pool, within deadlines.
 *
 * The server bounds the wait for row locks (the statement's own `lock_timeout`), which is all that
 * these statements ever wait for. The clock here bounds everything else. A connection that did not
 * answer in time is closed: what it may still answer belongs to nobody.
 */
export class Executor {
  readonly clock: Clock
  readonly callTimeoutMs: number
  readonly deadlines: Deadlines
  readonly #options: ExecutorOptions
  readonly #callTimeoutNanos: bigint
  #prepared: boolean

  constructor(options: ExecutorOptions) {
    this.clock = options.clock
    this.callTimeoutMs = options.callTimeoutMs
    this.deadlines = new Deadlines(options.clock)
    this.#options = options
    this.#callTimeoutNanos = BigInt(options.callTimeoutMs) * 1_000_000n
    this.#prepared = options.prepared
  }

  /** The deadline of a call that starts now, by the monotonic clock. */
  deadline(): bigint {
    return this.clock.monotonicNanos() + this.#callTimeoutNanos
  }

  /** The limit on lock waits of a call that makes one statement, as that statement's parameter. */
  lockTimeout(): string {
    return String(lockWaitMs(this.callTimeoutMs))
  }

  /**
   * A call that is one statement.
   *
   * @throws ContentionError, NotLeaderError
   */
  async run(statement: Statement, values: (string | null)[]): Promise<readonly Row[]> {
    const untilNanos = this.deadline()
    try {
      return await this.withConnection((send) => send(statement, values, untilNanos), untilNanos)
    } catch (failure) {
      throw toldOf(failure)
    }
  }

  /**
   * Several statements without parameters, in one transaction.
   *
   * @throws ContentionError, NotLeaderError
   */
  async runScript(text: string): Promise<void> {
    const untilNanos = this.deadline()
    try {
      await this.#onClient(
        (client) => this.#inTime(client.query({ text }), untilNanos, 'unknown', 'script'),
        untilNanos,
      )
    } catch (failure) {
      throw toldOf(failure)
    }
  }

  /**
   * For who chooses what to send when there is a connection, or sends more than one statement.
   *
   * @param untilNanos how long to wait for a connection; as long as the pool does, when left out
   * @throws StatementFailure when there is no connection, and what `use` throws
   */
  withConnection<Result>(
    use: (send: Send) => Promise<Result>,
    untilNanos?: bigint,
  ): Promise<Result> {
    return this.#onClient(
      (client) => use((statement, values, until) => this.#send(client, statement, values, until)),
      untilNanos,
    )
  }

  async #onClient<Result>(
    use: (client: PgPoolClient) => Promise<Result>,
    untilNanos: bigint | undefined,
  ): Promise<Result> {
    const client = await this.#connect(untilNanos)
    // Without a listener, a connection that breaks between two answers would end the process. The
    // statement in flight is told as well, which is enough.
    client.on('error', ignore)
    let destroy = false
    try {
      return await use(client)
    } catch (failure) {
      destroy = failure instanceof StatementFailure && failure.breaksConnection
      throw failure
    } finally {
      client.removeListener('error', ignore)
      client.release(destroy)
    }
  }

  async #connect(untilNanos: bigint | undefined): Promise<PgPoolClient> {
    const connecting = this.#options.pool.connect()
    try {
      if (untilNanos === undefined) return await connecting
      return await this.#inTime(connecting, untilNanos, 'not-applied', 'connect')
    } catch (error) {
      if (!(error instanceof StatementFailure)) throw this.#translate(error, 'connect', false)
      // The pool may still come up with a connection when nobody waits for it any more.
      connecting.then((late) => late.release()).catch(ignore)
      throw error
    }
  }

  async #send(
    client: PgPoolClient,
    statement: Statement,
    values: (string | null)[],
    untilNanos: bigint,
  ): Promise<readonly Row[]> {
    const prepared = this.#prepared
    try {
      return await this.#sendOnce(client, statement, values, untilNanos, prepared)
    } catch (failure) {
      const mixedUp = failure instanceof StatementFailure && failure.forgetsStatements
      if (!prepared || !mixedUp) throw failure
      this.#goOnUnprepared()
      // It was refused before it ran, so it may be sent again.
      return this.#sendOnce(client, statement, values, untilNanos, false)
    }
  }

  /** Once, whoever was first to find out: others that were on their way come here as well. */
  #goOnUnprepared(): void {
    if (!this.#prepared) return
    this.#prepared = false
    this.#options.onWarning(
      'PostgreSQL is behind a pooler that mixes up prepared statements: going on without them, ' +
        'at some cost. Set preparedStatements to false, or use PgBouncer 1.21 or newer with ' +
        'max_prepared_statements.',
    )
  }

  async #sendOnce(
    client: PgPoolClient,
    { name, text }: Statement,
    values: (string | null)[],
    untilNanos: bigint,
    prepared: boolean,
  ): Promise<readonly Row[]> {
    const query: PgQuery = prepared
      ? { name, text, values, rowMode: 'array' }
      : { text, values, rowMode: 'array' }
    const result = await this.#inTime(client.query(query), untilNanos, 'unknown', name)
    return result.rows as Row[]
  }

  /** @throws StatementFailure, of that fate when nothing comes in time */
  #inTime<Result>(
    answer: Promise<Result>,
    untilNanos: bigint,
    fate: Fate,
    name: string,
  ): Promise<Result> {
    return new Promise((resolve, reject) => {
      const answered = this.deadlines.watch(untilNanos, () => reject(timedOut(fate)))
      answer.then(
        (result) => {
          answered()
          resolve(result)
        },
        (error: unknown) => {
          answered()
          reject(this.#translate(error, name, fate === 'unknown'))
        },
      )
    })
  }

  #translate(error: unknown, name: string, sent: boolean): StatementFailure {
    this.#options.onDriverError(error, name)
    return translate(error, sent)
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

function ignore(): void {}
