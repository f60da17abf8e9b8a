import { randomBytes } from 'node:crypto'
import { Client } from 'pg'

/**
 * Creates a database on the server that `serverUrl` leads to.
 *
 * @param name one that nobody else has, unless given
 * @returns the new database's URL
 */
export async function createDatabase(
  serverUrl: string,
  name: string = `db_${randomBytes(8).toString('hex')}`,
): Promise<string> {
  await execute(serverUrl, (client) => `CREATE DATABASE ${client.escapeIdentifier(name)}`)
  const url = new URL(serverUrl)
  url.pathname = `/${encodeURIComponent(name)}`
  return url.href
}

/** Drops the database of `databaseUrl`, cutting off who is connected. Gone already is fine. */
export async function dropDatabase(databaseUrl: string): Promise<void> {
  const url = new URL(databaseUrl)
  const name = decodeURIComponent(url.pathname.slice(1))
  url.pathname = '/postgres'
  await execute(
    url.href,
    (client) => `DROP DATABASE IF EXISTS ${client.escapeIdentifier(name)} WITH (FORCE)`,
  )
}

async function execute(url: string, statement: (client: Client) => string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statement(client))
  } finally {
    await client.end()
  }
}
