import type { PgPool, PgQuery } from '../src/index.ts'

/** A pool on which a passage of the store's SQL, wherever it stands, reads otherwise. */
export function editedPool(pool: PgPool, ...edits: readonly (readonly [string, string])[]): PgPool {
  const edited = ({ text, values, rowMode }: PgQuery): PgQuery => ({
    text: edits.reduce((sql, [from, to]) => sql.replaceAll(from, to), text),
    ...(values && { values }),
    ...(rowMode && { rowMode }),
  })
  return {
    async connect() {
      const client = await pool.connect()
      return {
        query: (query) => client.query(edited(query)),
        release: (destroy) => client.release(destroy),
        on: (event, listener) => client.on(event, listener),
        removeListener: (event, listener) => client.removeListener(event, listener),
      }
    },
  }
}
