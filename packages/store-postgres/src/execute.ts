import type { Clock } from '@dlock/system'
import type { PgPool, PgPoolClient, PgQuery, PgTypes } from './driver-shape.ts'
import type { Statement } from './statement.ts'
import { type Fate, StatementFailure, timedOut, translate } from './translate-error.ts'

export type Row = readonly (string | null)[]

/**
 * Sends one statement.
 *
 * @throws StatementFailure, in time
 */
export type Send = (
  statement: Statement,
  values: readonly (string | null)[],
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

/** Numbers, tokens and dates are read by whoever asked, from the text that the server sent. */
const AS_TEXT: PgTypes = { getTypeParser: () => (text) => text }

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
  readonly #options: ExecutorOptions
  readonly #callTimeoutNanos: bigint
  #prepared: boolean

  constructor(options: ExecutorOptions) {
    this.clock = options.clock
    this.callTimeoutMs = options.callTimeoutMs
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
  async run(statement: Statement, values: readonly (string | null)[]): Promise<readonly Row[]> {
    const untilNanos = this.deadline()
    try {
      return await this.withConnection(untilNanos, (send) => send(statement, values, untilNanos))
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
      await this.#onClient(untilNanos, (client) =>
        this.#inTime(client.query({ text }), untilNanos, 'unknown', 'script'),
      )
    } catch (failure) {
      throw toldOf(failure)
    }
  }

  /**
   * For who chooses what to send when there is a connection, or sends more than one statement.
   *
   * @throws StatementFailure when there is no connection in time, and what `use` throws
   */
  withConnection<Result>(
    untilNanos: bigint,
    use: (send: Send) => Promise<Result>,
  ): Promise<Result> {
    return this.#onClient(untilNanos, (client) =>
      use((statement, values, until) => this.#send(client, statement, values, until)),
    )
  }

  async #onClient<Result>(
    untilNanos: bigint,
    use: (client: PgPoolClient) => Promise<Result>,
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

  #connect(untilNanos: bigint): Promise<PgPoolClient> {
    const connecting = this.#options.pool.connect()
    const client = this.#inTime(connecting, untilNanos, 'not-applied', 'connect')
    // The pool may still come up with a connection when nobody waits for it any more.
    client.catch(() => connecting.then((late) => late.release()).catch(ignore))
    return client
  }

  async #send(
    client: PgPoolClient,
    statement: Statement,
    values: readonly (string | null)[],
    untilNanos: bigint,
  ): Promise<readonly Row[]> {
    try {
      return await this.#sendOnce(client, statement, values, untilNanos)
    } catch (failure) {
      const mixedUp = failure instanceof StatementFailure && failure.forgetsStatements
      if (!this.#prepared || !mixedUp) throw failure
      // It was refused before it ran, so it may be sent again.
      this.#prepared = false
      this.#options.onWarning(
        'PostgreSQL is behind a pooler that mixes up prepared statements: going on without them, ' +
          'at some cost. Set preparedStatements to false, or use PgBouncer 1.21 or newer with ' +
          'max_prepared_statements.',
      )
      return this.#sendOnce(client, statement, values, untilNanos)
    }
  }

  async #sendOnce(
    client: PgPoolClient,
    { name, text }: Statement,
    values: readonly (string | null)[],
    untilNanos: bigint,
  ): Promise<readonly Row[]> {
    const query: PgQuery = {
      ...(this.#prepared ? { name } : {}),
      text,
      values: [...values],
      rowMode: 'array',
      types: AS_TEXT,
    }
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
    const leftMs = Number(untilNanos - this.clock.monotonicNanos()) / 1_000_000
    return new Promise((resolve, reject) => {
      const alarm = this.clock.setTimer(leftMs, () => reject(timedOut(fate)), { keepAlive: true })
      answer.then(
        (result) => {
          alarm.cancel()
          resolve(result)
        },
        (error: unknown) => {
          alarm.cancel()
          this.#options.onDriverError(error, name)
          reject(translate(error, fate === 'unknown'))
        },
      )
    })
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
