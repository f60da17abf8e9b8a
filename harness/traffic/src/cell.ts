import {
  FENCE_TABLE,
  inTransaction,
  type PostgresClient,
  type PostgresPool,
  permit,
  permits,
} from '@dlock/guard'

/** What a critical section writes: who was there, with which token. */
export interface Entry {
  readonly owner: string
  readonly token: bigint
}

/** `accepted: false`: a guard refused it, as `before` has a higher token. */
export interface Written {
  readonly accepted: boolean
  /** What the cell held. */
  readonly before: Entry | undefined
}

/** The resource that the locks protect: one entry for each key, behind a guard. */
export interface Cell {
  write(key: string, entry: Entry): Promise<Written>
  read(key: string): Promise<Entry | undefined>
}

/** In this process. */
export class MemoryCell implements Cell {
  readonly #entries = new Map<string, Entry>()

  async write(key: string, entry: Entry): Promise<Written> {
    const before = this.#entries.get(key)
    const accepted = permits(before?.token ?? 0n, entry.token)
    if (accepted) this.#entries.set(key, entry)
    return { accepted, before }
  }

  async read(key: string): Promise<Entry | undefined> {
    return this.#entries.get(key)
  }
}

const CELL_TABLE = `CREATE TABLE IF NOT EXISTS traffic_cell (
  lock_key TEXT COLLATE "C" PRIMARY KEY,
  owner    TEXT NOT NULL,
  token    BIGINT NOT NULL
)`

const STATEMENT_TIMEOUT_MS = 10_000

/** In PostgreSQL, as a user's resource would be: the guard's check and the write in one transaction. */
export class PostgresCell implements Cell {
  readonly #pool: PostgresPool

  private constructor(pool: PostgresPool) {
    this.#pool = pool
  }

  static async open(pool: PostgresPool): Promise<PostgresCell> {
    const cell = new PostgresCell(pool)
    await cell.#run(async (client) => {
      await client.query(FENCE_TABLE)
      await client.query(CELL_TABLE)
    })
    return cell
  }

  write(key: string, { owner, token }: Entry): Promise<Written> {
    return this.#run(async (client) => {
      const { passed } = await permit(client, key, token)
      const before = await select(client, key)
      if (!passed) return { accepted: false, before }
      await client.query(
        `INSERT INTO traffic_cell (lock_key, owner, token) VALUES ($1, $2, $3)
         ON CONFLICT (lock_key) DO UPDATE SET owner = EXCLUDED.owner, token = EXCLUDED.token`,
        [key, owner, `${token}`],
      )
      return { accepted: true, before }
    })
  }

  read(key: string): Promise<Entry | undefined> {
    return this.#run((client) => select(client, key))
  }

  #run<T>(work: (client: PostgresClient) => Promise<T>): Promise<T> {
    return inTransaction(this.#pool, STATEMENT_TIMEOUT_MS, work)
  }
}

async function select(client: PostgresClient, key: string): Promise<Entry | undefined> {
  const { rows } = await client.query(
    'SELECT owner, token::text AS token FROM traffic_cell WHERE lock_key = $1',
    [key],
  )
  const row = rows[0] as { owner: string; token: string } | undefined
  return row && { owner: row.owner, token: BigInt(row.token) }
}
