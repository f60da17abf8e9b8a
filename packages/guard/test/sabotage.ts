import type { PooledClient, PostgresPool } from '../src/index.ts'

/** Pools that break the proxy from below, one rule each, so that its own code need not change. */

/** Every statement that matches is sent with the replacement instead. */
export function rewriting(
  pattern: RegExp,
  replacement: string,
): (pool: PostgresPool) => PostgresPool {
  return (pool) => ({
    connect: async () => {
      const client = await pool.connect()
      return {
        query: (text, values) =>
          client.query(
            text.replace(pattern, () => replacement),
            values,
          ),
        release: (destroy) => client.release(destroy),
      }
    },
  })
}

/** The attempt is committed together with its outcome, not before the request is sent. */
export function intentInsideTheForwarding(pool: PostgresPool): PostgresPool {
  let open: PooledClient | undefined
  return {
    connect: async () => {
      const second = open
      open = undefined
      const client = second ?? (await pool.connect())
      return {
        query: async (text, values) => {
          if (second !== undefined && text.startsWith('BEGIN')) return { rows: [] }
          if (second === undefined && text.endsWith('COMMIT')) {
            open = client
            client.on?.('error', () => client.release(true))
            return { rows: [] }
          }
          return client.query(text, values)
        },
        release: (destroy) => {
          if (open !== client) client.release(destroy)
        },
      }
    },
  }
}

/** The mark is only compared before the request is sent, and raised with its outcome. */
export function markAfterTheCall(pool: PostgresPool): PostgresPool {
  let raise: (() => Promise<unknown>) | undefined
  return {
    connect: async () => {
      const client = await pool.connect()
      return {
        query: async (text, values) => {
          if (text.includes('INSERT INTO dlock_fence')) {
            raise = () =>
              pool.connect().then((c) => c.query(text, values).finally(() => c.release()))
            return client.query(
              `SELECT 1 WHERE NOT EXISTS
                 (SELECT 1 FROM dlock_fence WHERE lock_key = $1 AND fence >= $2::bigint)`,
              values,
            )
          }
          if (text.includes('UPDATE dlock_attempt')) await raise?.()
          return client.query(text, values)
        },
        release: (destroy) => client.release(destroy),
      }
    },
  }
}
