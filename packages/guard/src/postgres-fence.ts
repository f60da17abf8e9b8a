import { checkFencingToken, checkKey, FencedOutError } from '@dlock/lock-api'
import { checkFloor, type Refused, type Verdict } from './fencing-token.ts'
import type { PostgresClient } from './postgres-client.ts'

/**
 * The fences of a database: one row per lock key (P-26), whatever that lock guards. It belongs in
 * the same database as the guarded rows, so that one transaction covers both, and its rows are
 * never deleted: a deleted fence forgets, and lets the next stale holder in.
 *
 * For a migration of the application's own; it may be applied again.
 */
export const FENCE_TABLE: string = `CREATE TABLE IF NOT EXISTS dlock_fence (
  lock_key  TEXT COLLATE "C" PRIMARY KEY,
  fence     BIGINT NOT NULL CHECK (fence > 0),
  raised_at TIMESTAMPTZ NOT NULL DEFAULT now()
)`

/**
 * The checks of a guard whose resource lives in PostgreSQL. Each is one conditional statement, run
 * on the caller's own client inside the caller's own transaction:
 *
 * ```ts
 * await client.query('BEGIN')
 * await admitOrThrow(client, lock.key, lock.fencingToken)   // first statement: raise …
 * await client.query('UPDATE account SET …')                // … then read and write
 * await client.query('COMMIT')
 * ```
 *
 * **First**, because what was read before the fence was raised may be overwritten by a late write
 * of the old holder (P-27). From the check to the end of the transaction the fence row is locked:
 * a newer holder's check waits, so that what this transaction writes is ordered before it.
 *
 * Outside a transaction a check is worth nothing: it decides about the past. On refusal, roll back.
 * At REPEATABLE READ and above, PostgreSQL may answer with a serialization failure instead of a
 * refusal; run the whole transaction again, with the same token.
 *
 * `admit`: the grant's first protected write; passes when `fence < token` and raises the fence.
 */
export function admit(client: PostgresClient, key: string, token: bigint): Promise<Verdict> {
  return check(client, ADMIT, key, token)
}

/** A later write of the admitted grant; passes when `fence = token`. See `admit`. */
export function continueGrant(
  client: PostgresClient,
  key: string,
  token: bigint,
): Promise<Verdict> {
  return check(client, CONTINUE, key, token)
}

/** The plain rule; passes when `fence <= token` and raises the fence. See `admit`. */
export function permit(client: PostgresClient, key: string, token: bigint): Promise<Verdict> {
  return check(client, PERMIT, key, token)
}

/** As `admit`. @throws FencedOutError instead of returning the refusal */
export async function admitOrThrow(
  client: PostgresClient,
  key: string,
  token: bigint,
): Promise<void> {
  throwRefused(await admit(client, key, token))
}

/** As `continueGrant`. @throws FencedOutError instead of returning the refusal */
export async function continueGrantOrThrow(
  client: PostgresClient,
  key: string,
  token: bigint,
): Promise<void> {
  throwRefused(await continueGrant(client, key, token))
}

/** As `permit`. @throws FencedOutError instead of returning the refusal */
export async function permitOrThrow(
  client: PostgresClient,
  key: string,
  token: bigint,
): Promise<void> {
  throwRefused(await permit(client, key, token))
}

/**
 * Pushes a revocation's floor: from now on every token up to `floor` is refused for `key`. Forward
 * only; a lower floor changes nothing.
 *
 * @param highestToken see `checkFloor`: the lock service's highest token, when it is known
 * @returns the fence as it is now
 * @throws RangeError when no later holder could pass that floor (P-28)
 */
export async function advanceFence(
  client: PostgresClient,
  key: string,
  floor: bigint,
  highestToken?: bigint,
): Promise<bigint> {
  checkKey(key)
  checkFloor(floor, highestToken)
  const { rows } = await client.query(ADVANCE, [key, floor.toString()])
  return fenceIn(rows)
}

/** The fence of `key`, 0 when it has none. A diagnostic read: it decides nothing. */
export async function readFence(client: PostgresClient, key: string): Promise<bigint> {
  checkKey(key)
  const { rows } = await client.query(READ, [key])
  return fenceIn(rows)
}

/**
 * Tokens travel as text and are compared as BIGINT: a driver may be configured to turn BIGINT into
 * a JavaScript number, which is exact only to 2^53 (P-25).
 *
 * An `INSERT … ON CONFLICT` that its WHERE refuses has locked the row all the same, so that the
 * read which then tells both tokens sees the very fence that refused.
 */
const ADMIT = raiseWhere('f.fence < excluded.fence')
const PERMIT = raiseWhere('f.fence <= excluded.fence')
/** Shared with other continuations of the grant; it keeps out whoever would raise the fence. */
const CONTINUE = `
  SELECT fence::text FROM dlock_fence WHERE lock_key = $1 AND fence = $2::bigint FOR SHARE`
const ADVANCE = `
  INSERT INTO dlock_fence AS f (lock_key, fence) VALUES ($1, $2::bigint)
  ON CONFLICT (lock_key) DO UPDATE
    SET fence = greatest(f.fence, excluded.fence), raised_at = now()
  RETURNING fence::text`
const READ = 'SELECT fence::text FROM dlock_fence WHERE lock_key = $1'

function raiseWhere(rule: string): string {
  return `
  INSERT INTO dlock_fence AS f (lock_key, fence) VALUES ($1, $2::bigint)
  ON CONFLICT (lock_key) DO UPDATE SET fence = excluded.fence, raised_at = now()
    WHERE ${rule}
  RETURNING fence::text`
}

async function check(
  client: PostgresClient,
  statement: string,
  key: string,
  token: bigint,
): Promise<Verdict> {
  checkKey(key)
  checkFencingToken(token)
  const { rows } = await client.query(statement, [key, token.toString()])
  if (rows.length > 0) return { passed: true }
  const storedToken = await readFence(client, key)
  return { passed: false, key, presentedToken: token, storedToken }
}

function throwRefused(verdict: Verdict): void {
  if (!verdict.passed) throw fencedOut(verdict)
}

/** The refusal as the contract's error. */
export function fencedOut(refused: Refused): FencedOutError {
  return new FencedOutError(refused.key, refused.presentedToken, refused.storedToken)
}

function fenceIn(rows: readonly unknown[]): bigint {
  const [row] = rows as readonly { readonly fence: string }[]
  return row === undefined ? 0n : BigInt(row.fence)
}
