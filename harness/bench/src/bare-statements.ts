import pg from 'pg'
import { microseconds, type Sample } from './sample.ts'

/**
 * Acquire and release as somebody would write them who has one key and no library: the same tables,
 * the same meaning and the same durability as the store's own statements, one key each. `$1` and so
 * on are filled in by the driver or by pgbench.
 */
export const ACQUIRE = `
  INSERT INTO lock_entry AS e
    (lock_key, owner_id, session_id, fencing_token, acquired_at, expires_at, wanted)
  SELECT $1, 'bench', s.session_id, nextval('fencing_token_seq'), now(), now() + interval '30 s', false
    FROM lock_session AS s WHERE s.session_id = $2 AND s.expires_at > now()
  ON CONFLICT (lock_key) DO UPDATE SET
    owner_id = EXCLUDED.owner_id,
    session_id = EXCLUDED.session_id,
    fencing_token = nextval('fencing_token_seq'),
    acquired_at = now(),
    expires_at = EXCLUDED.expires_at,
    wanted = false
  WHERE e.expires_at <= now()
  RETURNING fencing_token`

export const RELEASE = `
  UPDATE lock_entry SET expires_at = '-infinity'
  WHERE lock_key = $1 AND fencing_token = $2 AND expires_at > '-infinity'`

/** Keys that one worker goes around; enough that a key rests between its turns. */
export const KEYS_PER_WORKER = 64

/** The two statements in a loop on one connection of the driver that the store uses, too. */
export async function bareLoop(
  url: string,
  sessionId: string,
  windowMs: number,
  sample: Sample,
): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const start = process.hrtime.bigint()
    const end = start + BigInt(Math.round(windowMs * 1e6))
    let now = start
    for (let turn = 0; now < end; turn += 1) {
      const key = `bare:${turn % KEYS_PER_WORKER}`
      const acquired = await client.query<{ fencing_token: string }>({
        name: 'acquire',
        text: ACQUIRE,
        values: [key, sessionId],
      })
      const token = acquired.rows[0]?.fencing_token
      if (token === undefined) throw new Error(`the bare loop found ${key} held`)
      await client.query({ name: 'release', text: RELEASE, values: [key, token] })
      const before = now
      now = process.hrtime.bigint()
      sample.record(microseconds(before, now))
    }
    sample.lasted(microseconds(start, now) / 1e6)
  } finally {
    await client.end()
  }
}
