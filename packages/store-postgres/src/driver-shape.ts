/**
 * What this package calls of the PostgreSQL driver, and no more. A `Pool` and a `Client` of `pg`
 * fit; the application makes them, configures them and ends them.
 */
export interface PgPool {
  connect(): Promise<PgPoolClient>
}

/** A connection, lent by the pool. */
export interface PgPoolClient {
  query(query: PgQuery): Promise<PgResult>
  /** With `true` the connection is closed instead of being used again. */
  release(destroy?: boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
}

/** A connection of its own that is not connected yet, for announcements. */
export interface PgListenClient {
  connect(): Promise<unknown>
  query(query: PgQuery): Promise<PgResult>
  end(): Promise<void>
  on(event: 'notification', listener: (message: PgNotification) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'end', listener: () => void): unknown
}

/** What `NOTIFY` sends. */
export interface PgNotification {
  readonly channel: string
  readonly payload?: string | undefined
}

/** One statement, or several without parameters. */
export interface PgQuery {
  /** A name makes it a prepared statement of the connection. */
  readonly name?: string
  readonly text: string
  readonly values?: unknown[]
  readonly rowMode?: 'array'
}

/** Rows are arrays when the query says so. */
export interface PgResult {
  readonly rows: unknown[]
}
