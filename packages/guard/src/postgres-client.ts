/**
 * The part of a PostgreSQL driver that the guard needs: a connection that the caller owns. A
 * `Client` or `PoolClient` of `pg` fits; so does any driver with a thin wrapper of this shape.
 */
export interface PostgresClient {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>
}

/** Where connections come from: a `Pool` of `pg` fits. */
export interface PostgresPool {
  connect(): Promise<PooledClient>
}

/** A connection that was lent by a pool. */
export interface PooledClient extends PostgresClient {
  /** With `true` the connection is closed instead of being used again. */
  release(destroy?: boolean): void
  /** A driver that emits an error nobody listens for would end the process: `pg` does. */
  on?(event: 'error', listener: (error: Error) => void): unknown
  off?(event: 'error', listener: (error: Error) => void): unknown
}

/**
 * Runs `work` in one transaction on a connection of its own: committed when it resolves, rolled
 * back when it rejects. A connection whose transaction failed in any way is not used again, so
 * that no caller inherits a half-open one. A statement that failed fails all of it, also when `work`
 * went on regardless.
 *
 * When the COMMIT itself rejects, the transaction may have been committed all the same.
 *
 * @param statementTimeoutMs whole milliseconds; bounds the wait for another transaction's row too
 */
export async function inTransaction<T>(
  pool: PostgresPool,
  statementTimeoutMs: number,
  work: (client: PostgresClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect()
  // A connection that breaks between two statements makes the next one reject; that is enough.
  const ignore = (): void => undefined
  client.on?.('error', ignore)
  let failed = true
  try {
    await client.query(
      `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = ${statementTimeoutMs}`,
    )
    const result = await work(client)
    // A COMMIT of a transaction in which a statement failed rolls back and calls that a success;
    // the SELECT makes it the failure that it is.
    await client.query('SELECT 1; COMMIT')
    failed = false
    return result
  } finally {
    client.off?.('error', ignore)
    client.release(failed)
  }
}
