/** One thing broken on purpose. */
export interface Mutation {
  /** What is broken, as somebody would describe the bug. */
  readonly broken: string
  /** What must hold. */
  readonly rule: string
  readonly file: string
  /** Stands in `file` exactly once. */
  readonly passage: string
  readonly replacement: string
  /** Where a test must notice. */
  readonly tests: string
}

const STORE = 'packages/store-postgres/src'
const CONFORMANCE = 'packages/store-postgres/test/conformance.test.ts'

export const mutations: readonly Mutation[] = [
  {
    broken: 'A take-over forgets `nextval`: the new holder gets the old one’s token',
    rule: 'INV-04',
    file: `${STORE}/try-insert.ts`,
    passage: 'CASE WHEN ${SAME_LIVE_GRANT} THEN e.fencing_token ELSE ${MINT} END',
    replacement: 'e.fencing_token',
    tests: CONFORMANCE,
  },
  {
    broken: 'A transfer forgets `nextval`',
    rule: 'INV-04',
    file: `${STORE}/transfer.ts`,
    passage: 'CASE WHEN a.lives THEN ${MINT} ELSE e.fencing_token END',
    replacement: 'e.fencing_token',
    tests: CONFORMANCE,
  },
  {
    broken: 'A release ignores the token',
    rule: 'FR-05',
    file: `${STORE}/delete-if-owner.ts`,
    passage: ' AND e.fencing_token = a.token',
    replacement: '',
    tests: CONFORMANCE,
  },
  {
    broken: 'A heartbeat upserts: a dead session comes back to life',
    rule: 'FR-04',
    file: `${STORE}/sessions.ts`,
    passage: `UPDATE lock_session AS s SET expires_at = GREATEST(s.expires_at, \${leaseEnd('a.ttl_ms')})
  FROM \${asked} AS a
  WHERE s.session_id = a.key AND s.expires_at > now()
  RETURNING s.session_id`,
    replacement: `INSERT INTO lock_session AS s (session_id, owner_id, created_at, expires_at)
  SELECT a.key, 'heartbeat', now(), \${leaseEnd('a.ttl_ms')} FROM \${asked} AS a
  ON CONFLICT (session_id) DO UPDATE SET expires_at = EXCLUDED.expires_at
  RETURNING s.session_id`,
    tests: CONFORMANCE,
  },
  {
    broken: '`extend` prolongs a lease that is over',
    rule: 'FR-06',
    file: `${STORE}/extend.ts`,
    passage: 'AND e.fencing_token = a.token AND e.expires_at > now()',
    replacement: 'AND e.fencing_token = a.token',
    tests: CONFORMANCE,
  },
  {
    broken: 'The token is read through a JavaScript number',
    rule: 'P-25',
    file: `${STORE}/fencing-token.ts`,
    passage: 'BigInt(text)',
    replacement: 'BigInt(Number(text))',
    tests: CONFORMANCE,
  },
  {
    broken: 'The deadline of a grant is measured from the reply',
    rule: 'FR-11',
    file: 'packages/lock-client/src/acquire-call.ts',
    passage: 'new Lease(sentAt, grant.ttlMs, safetyMargin)',
    replacement: 'new Lease(leaseClock.instant(), grant.ttlMs, safetyMargin)',
    tests: 'packages/lock-client/test/negative-controls.test.ts',
  },
  {
    broken: 'The engine accepts a token that is not above the last',
    rule: 'INV-04',
    file: 'packages/engine/src/token-guard.ts',
    passage: 'if (handle.fencingToken > mark.token) return true',
    replacement: 'if (handle.fencingToken > 0n) return true',
    tests: 'packages/engine/test/token-guard.test.ts',
  },
]
