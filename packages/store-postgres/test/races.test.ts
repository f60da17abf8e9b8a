import assert from 'node:assert/strict'
import type { LockHandle } from '@dlock/lock-api'
import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { PostgresStore } from '../src/index.ts'
import { editedPool } from './edited-pool.ts'
import { openStageAlone, type Stage, until, untilBlocked } from './stage.ts'

/**
 * Schedules that are rare and must be right. A statement stalls in the middle because a trigger,
 * which only these tests have, waits for a gate: an advisory lock that the test holds.
 */

const LONG_MS = 3_600_000
const FAR_FUTURE = new Date('9999-01-01T00:00:00Z')

let stage: Stage
let store: PostgresStore
let gate: pg.Client
let round = 0
/** Of each test its own. */
let job: string

beforeAll(async () => {
  stage = await openStageAlone()
  store = stage.store()
  gate = await stage.client()
  await stage.admin.query(`
    CREATE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NEW.owner_id = 'slow' THEN PERFORM pg_advisory_xact_lock_shared(1); END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER stall BEFORE INSERT ON lock_entry FOR EACH ROW EXECUTE FUNCTION stall();
    CREATE TRIGGER stall BEFORE UPDATE ON lock_session FOR EACH ROW EXECUTE FUNCTION stall();
    CREATE TABLE naive (lock_key text PRIMARY KEY, owner_id text, token bigint);
    CREATE TRIGGER stall BEFORE INSERT ON naive FOR EACH ROW EXECUTE FUNCTION stall()`)
})

afterAll(() => stage[Symbol.asyncDispose]())

beforeEach(async () => {
  round += 1
  job = `job/${round}`
  await gate.query('SELECT pg_advisory_lock(1)')
})

const openGate = () => gate.query('SELECT pg_advisory_unlock(1)')

test('the race that is closed: an upsert that stalls between its token and its row inserts an old one', async () => {
  const acquire = (owner: string) =>
    stage.admin.query(
      `INSERT INTO naive VALUES ($1, $2, nextval('fencing_token_seq'))
       ON CONFLICT (lock_key) DO UPDATE SET token = nextval('fencing_token_seq') WHERE false
       RETURNING token`,
      [job, owner],
    )
  const slow = acquire('slow')
  await untilBlocked(stage.admin)
  const quick = await acquire('quick')
  await stage.admin.query('DELETE FROM naive WHERE lock_key = $1', [job])
  await openGate()
  const token = BigInt((await slow).rows[0].token)
  expect(token).toBeLessThan(BigInt(quick.rows[0].token))
})

test('INV-04: a stalled insertion of a new key gets a token above that of a grant made and released meanwhile', async () => {
  const slow = store.tryInsert(job, 'slow', await store.openSession('slow', LONG_MS), LONG_MS)
  await untilBlocked(stage.admin)
  const quick = await acquire('quick')
  expect(await store.deleteIfOwner(job, quick.fencingToken)).toBe(true)
  await openGate()
  expect((await slow)?.fencingToken).toBeGreaterThan(quick.fencingToken)
})

const WAYS_TO_END: Readonly<Record<string, (grant: LockHandle) => Promise<unknown>>> = {
  release: (grant) => store.deleteIfOwner(grant.key, grant.fencingToken),
  revocation: (grant) => store.revoke(grant.key, 'operator', 'for the test'),
  'the close of its session': (grant) => store.closeSession(grant.sessionId),
  expiry: (grant) =>
    stage.admin.query('UPDATE lock_entry SET expires_at = now() WHERE lock_key = $1', [grant.key]),
  'the death of its session': (grant) =>
    stage.admin.query('UPDATE lock_session SET expires_at = now() WHERE session_id = $1', [
      grant.sessionId,
    ]),
}

test.each(Object.entries(WAYS_TO_END))(
  'INV-04: nor does sweeping after %s let the stalled insertion in with its old token',
  async (_, end) => {
    // A mark from before the stall, and its own grants, must not count for what came after.
    await store.reapExpired(FAR_FUTURE)
    const slow = store.tryInsert(job, 'slow', await store.openSession('slow', LONG_MS), LONG_MS)
    await untilBlocked(stage.admin)
    const quick = await acquire('quick')
    await end(quick)
    for (let sweep = 0; sweep < 5; sweep += 1) await store.reapExpired(FAR_FUTURE)
    expect(await rows()).toBe(1)
    const highest = await store.capabilities().tokens?.highestToken()
    await openGate()
    const granted = await slow
    expect(granted?.fencingToken).toBeGreaterThan(highest ?? 0n)

    // With the stalled transaction over, nothing keeps the row.
    await store.deleteIfOwner(job, granted?.fencingToken ?? 0n)
    for (let sweep = 0; sweep < 3; sweep += 1) await store.reapExpired(FAR_FUTURE)
    expect(await rows()).toBe(0)
  },
)

test('INV-04: nor is a stalled repetition let in below the floor of a revocation', async () => {
  const sessionId = await store.openSession('worker', LONG_MS)
  assert.ok(await store.tryInsert(job, 'worker', sessionId, LONG_MS))
  // The marks are past the grant, and before the repetition, whose transaction they do not wait for.
  for (let sweep = 0; sweep < 3; sweep += 1) await store.reapExpired(FAR_FUTURE)
  const repeated = store.tryInsert(job, 'slow', sessionId, LONG_MS)
  await untilBlocked(stage.admin)
  const { newTokenFloor } = await store.revoke(job, 'operator', 'for the test')
  for (let sweep = 0; sweep < 5; sweep += 1) await store.reapExpired(FAR_FUTURE)
  await openGate()
  expect((await repeated)?.fencingToken).toBeGreaterThan(newTokenFloor ?? 0n)
})

test('seen red: without a transaction id before the token, sweeping lets the old token in', async () => {
  const broken = stage.store({
    pool: editedPool(stage.pool(), [
      "CASE WHEN pg_current_xact_id() IS NOT NULL THEN nextval('fencing_token_seq') END",
      "nextval('fencing_token_seq')",
    ]),
  })
  // Now and then the sequence itself takes one: not within the next numbers.
  await stage.admin.query(
    `SELECT nextval('fencing_token_seq')
     FROM generate_series(0, (SELECT log_cnt FROM fencing_token_seq))`,
  )
  const slow = broken.tryInsert(job, 'slow', await store.openSession('slow', LONG_MS), LONG_MS)
  await untilBlocked(stage.admin)
  const quick = await acquire('quick')
  await store.deleteIfOwner(job, quick.fencingToken)
  for (let sweep = 0; sweep < 5; sweep += 1) await store.reapExpired(FAR_FUTURE)
  await openGate()
  expect((await slow)?.fencingToken).toBeLessThan(quick.fencingToken)
})

test('seen red: a revocation that leaves the row its old number lets in a token below the floor', async () => {
  const broken = stage.store({
    pool: editedPool(
      stage.pool(),
      [`SET fencing_token = nextval('fencing_token_seq'), expires_at`, 'SET expires_at'],
      ['e.fencing_token AS floor', `nextval('fencing_token_seq') AS floor`],
    ),
  })
  const sessionId = await store.openSession('worker', LONG_MS)
  assert.ok(await store.tryInsert(job, 'worker', sessionId, LONG_MS))
  for (let sweep = 0; sweep < 3; sweep += 1) await store.reapExpired(FAR_FUTURE)
  const repeated = store.tryInsert(job, 'slow', sessionId, LONG_MS)
  await untilBlocked(stage.admin)
  const { newTokenFloor } = await broken.revoke(job, 'operator', 'for the test')
  for (let sweep = 0; sweep < 5; sweep += 1) await store.reapExpired(FAR_FUTURE)
  await openGate()
  expect((await repeated)?.fencingToken).toBeLessThan(newTokenFloor ?? 0n)
})

test('INV-06: a stalled attempt does not take a grant over because the holder’s session is younger than itself', async () => {
  const slow = store.tryInsert(job, 'slow', await store.openSession('slow', LONG_MS), LONG_MS)
  await untilBlocked(stage.admin)
  const quick = await acquire('quick')
  await openGate()
  expect(await slow).toBeUndefined()
  expect((await store.extend(job, quick.fencingToken, LONG_MS))?.fencingToken).toBe(
    quick.fencingToken,
  )
})

test('seen red: with the session looked at in the take-over, that grant is taken over while it lives', async () => {
  const own = 'WHERE e.expires_at <= now() OR e.session_id = EXCLUDED.session_id'
  const broken = stage.store({
    pool: editedPool(stage.pool(), [
      own,
      `${own} OR NOT EXISTS (
        SELECT FROM lock_session AS s WHERE s.session_id = e.session_id AND s.expires_at > now()
      )`,
    ]),
  })
  const slow = broken.tryInsert(job, 'slow', await store.openSession('slow', LONG_MS), LONG_MS)
  await untilBlocked(stage.admin)
  const quick = await acquire('quick')
  await openGate()
  expect((await slow)?.fencingToken).toBeGreaterThan(quick.fencingToken)
})

test('INV-06: a heartbeat that began in time wins over whoever thinks the session dead', async () => {
  const sessionId = await store.openSession('slow', 3_000)
  const grant = await store.tryInsert(job, 'worker', sessionId, LONG_MS)
  assert.ok(grant)
  const beat = store.heartbeat(sessionId, LONG_MS)
  await untilBlocked(stage.admin)
  await until('the session seems dead', async () => {
    const { rows } = await stage.admin.query(
      'SELECT FROM lock_session WHERE session_id = $1 AND expires_at <= now()',
      [sessionId],
    )
    return rows.length === 1
  })
  const rival = acquireOrNot('rival')
  await untilBlocked(stage.admin, 2)
  await openGate()
  expect(await beat).toBe(true)
  expect(await rival).toBeUndefined()
  expect((await store.extend(job, grant.fencingToken, LONG_MS))?.fencingToken).toBe(
    grant.fencingToken,
  )
})

test('INV-04: the tokens are advanced around whoever is taking one, and nobody takes one meanwhile', async () => {
  const { tokens } = store.capabilities()
  assert.ok(tokens)
  await openGate()
  const taker = await stage.client()
  await taker.query('BEGIN')
  const { rows } = await taker.query(`SELECT nextval('fencing_token_seq') AS token`)
  const above = BigInt(rows[0].token) + 1_000n
  const advancing = tokens.advanceTokens(above)
  await untilBlocked(stage.admin)
  const meanwhile = acquire('meanwhile')
  await untilBlocked(stage.admin, 2)
  await taker.query('COMMIT')
  expect(await advancing).toBeGreaterThanOrEqual(above)
  expect((await meanwhile).fencingToken).toBeGreaterThan(above)
})

test('INV-04: tokens that are advanced while many are taken are all different', async () => {
  const { tokens } = store.capabilities()
  assert.ok(tokens)
  await openGate()
  const taken: bigint[] = []
  const take = async (worker: number): Promise<void> => {
    const sessionId = await store.openSession('w', LONG_MS)
    for (let turn = 0; turn < 20; turn += 1) {
      const grant = await store.tryInsert(`${job}/${worker}/${turn}`, 'w', sessionId, LONG_MS)
      taken.push(grant?.fencingToken ?? 0n)
    }
  }
  const advance = async (): Promise<void> => {
    for (let turn = 0; turn < 10; turn += 1) {
      await tokens.advanceTokens((await tokens.highestToken()) + 1n)
    }
  }
  await Promise.all([...Array.from({ length: 8 }, (_, worker) => take(worker)), advance()])
  expect(new Set(taken).size).toBe(160)
})

async function acquire(owner: string): Promise<LockHandle> {
  const grant = await acquireOrNot(owner)
  assert.ok(grant, 'must be granted')
  return grant
}

async function acquireOrNot(owner: string): Promise<LockHandle | undefined> {
  return store.tryInsert(job, owner, await store.openSession(owner, LONG_MS), LONG_MS)
}

async function rows(): Promise<number> {
  const { rows } = await stage.admin.query('SELECT FROM lock_entry WHERE lock_key = $1', [job])
  return rows.length
}
