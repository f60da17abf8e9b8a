import { checkKey, LockInfo } from '@dlock/lock-api'
import type { Executor, Row } from './execute.ts'
import { parseToken } from './fencing-token.ts'
import { epochMs, grantLives, instant } from './live.ts'
import { statement } from './statement.ts'

/** What `infoOf` reads, of `lock_entry AS e`. */
export const INFO_COLUMNS: string = `e.lock_key, e.owner_id, e.fencing_token::text,
    ${epochMs('e.acquired_at')}, ${epochMs('e.expires_at')}`

const READ = statement(
  'read',
  `SELECT ${INFO_COLUMNS} FROM lock_entry AS e WHERE e.lock_key = $1 AND ${grantLives('e')}`,
)

export async function read(executor: Executor, key: string): Promise<LockInfo | undefined> {
  const [row] = await executor.run(READ, [checkKey(key)])
  return row && infoOf(row)
}

/** This store knows of no waiters: they queue in the engine. */
export function infoOf([key, ownerId, token, acquired, expires]: Row): LockInfo {
  return new LockInfo(
    key ?? '',
    ownerId ?? '',
    parseToken(token ?? ''),
    instant(acquired),
    instant(expires),
    0,
  )
}
