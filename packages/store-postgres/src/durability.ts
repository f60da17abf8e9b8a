import type { Executor } from './execute.ts'
import { statement } from './statement.ts'

const SETTINGS = statement(
  'settings',
  `
  SELECT current_setting('fsync'), current_setting('synchronous_commit'),
    current_setting('server_encoding')`,
)

/**
 * What an operator has to know of the server's settings. A grant that was answered and is then
 * forgotten is granted again, to somebody else and with the same token: no guard can tell them
 * apart.
 */
export async function findUnsafeSettings(executor: Executor): Promise<readonly string[]> {
  const [row] = await executor.run(SETTINGS, [])
  const [fsync, synchronousCommit, encoding] = row ?? []
  const found: string[] = []
  if (fsync === 'off') {
    found.push('fsync is off: a crash can lose grants, and repeat their tokens (INV-04)')
  }
  if (synchronousCommit === 'off') {
    found.push(
      'synchronous_commit is off: a crash can lose grants, and repeat their tokens (INV-04)',
    )
  }
  if (encoding !== 'UTF8') {
    found.push(`the database is encoded in ${encoding}: a key that it cannot hold is refused`)
  }
  return found
}
