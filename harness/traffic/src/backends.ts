import { LockEngine } from '@dlock/engine'
import { createDatabase, startLocalPostgres } from '@dlock/local-postgres'
import { LockClient } from '@dlock/lock-client'
import { MemoryStore } from '@dlock/store-memory'
import { openPostgresStore } from '@dlock/store-postgres'
import pg from 'pg'
import { type Cell, MemoryCell, PostgresCell } from './cell.ts'

/** Where the locks come from, and the cell that they protect. */
export interface Backend extends AsyncDisposable {
  readonly name: string
  readonly client: LockClient
  readonly cell: Cell
}

/** A `lockd` that runs already. The cell is in this process, so every client must be, too. */
export async function remote(url: string): Promise<Backend> {
  const client = new LockClient({ url })
  return {
    name: 'lockd',
    client,
    cell: new MemoryCell(),
    [Symbol.asyncDispose]: () => client.close(),
  }
}

/** Client, engine and memory store in this process. */
export async function memory(): Promise<Backend> {
  const engine = new LockEngine({ store: new MemoryStore() })
  await engine.start()
  const client = new LockClient({ service: engine })
  return {
    name: 'memory',
    client,
    cell: new MemoryCell(),
    async [Symbol.asyncDispose]() {
      await client.close()
      await engine.close()
    },
  }
}

/** Client and engine in this process, on a PostgreSQL of its own; the cell in another database. */
export async function postgres(): Promise<Backend> {
  const server = await startLocalPostgres({ settings: { max_connections: '100' } })
  const url = await createDatabase(server.url())
  const pool = new pg.Pool({ connectionString: url, max: 16, statement_timeout: 10_000 })
  const listen = (): pg.Client => new pg.Client({ connectionString: url })
  const engine = new LockEngine({ store: await openPostgresStore({ pool, listen }) })
  await engine.start()
  const client = new LockClient({ service: engine })
  const cells = new pg.Pool({ connectionString: await createDatabase(server.url()), max: 16 })
  // A connection on its way out may still be told that the server stops.
  for (const each of [pool, cells]) each.on('error', () => {})
  return {
    name: 'pg',
    client,
    cell: await PostgresCell.open(cells),
    async [Symbol.asyncDispose]() {
      await client.close()
      await engine.close()
      await Promise.all([pool.end(), cells.end()])
      await server.stop()
    },
  }
}
