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
  {
    broken: 'Admission takes an equal token: a replay is admitted',
    rule: 'FR-17',
    file: 'packages/guard/src/postgres-fence.ts',
    passage: "raiseWhere('f.fence < excluded.fence')",
    replacement: "raiseWhere('f.fence <= excluded.fence')",
    tests: 'packages/guard/test/postgres-fence.test.ts',
  },
  {
    broken: 'A continuation locks nothing: the fence may rise before its write is committed',
    rule: 'P-27',
    file: 'packages/guard/src/postgres-fence.ts',
    passage: 'AND fence = $2::bigint FOR SHARE`',
    replacement: 'AND fence = $2::bigint`',
    tests: 'packages/guard/test/postgres-fence.test.ts',
  },
  {
    broken: 'A pushed floor lowers the fence',
    rule: 'INV-05',
    file: 'packages/guard/src/postgres-fence.ts',
    passage: 'SET fence = greatest(f.fence, excluded.fence)',
    replacement: 'SET fence = excluded.fence',
    tests: 'packages/guard/test/postgres-fence.test.ts',
  },
  {
    broken: 'A reset after the request was sent counts as "not presented"',
    rule: 'P-23',
    file: 'packages/guard/src/present-once.ts',
    passage: "return { kind: 'unknown', why: (error as Error).message }",
    replacement: "return { kind: 'not-presented', why: (error as Error).message }",
    tests: 'packages/guard/test/present-once.test.ts',
  },
  {
    broken: 'A claim takes an equal token: one grant opens two payouts',
    rule: 'FR-15',
    file: 'payouts/payment-resource/src/fencing-token.ts',
    passage: "'(a.fence < $2::bigint OR",
    replacement: "'(a.fence <= $2::bigint OR",
    tests: 'payouts/payment-resource/test/fencing.test.ts',
  },
  {
    broken: 'A later write of a payout takes any token that is not too high',
    rule: 'FR-15',
    file: 'payouts/payment-resource/src/fencing-token.ts',
    passage: "'(a.fence = $2::bigint OR",
    replacement: "'(a.fence >= $2::bigint OR",
    tests: 'payouts/payment-resource/test/fencing.test.ts',
  },
  {
    broken: 'A claim sets no money aside',
    rule: 'INV-03',
    file: 'payouts/payment-resource/src/holder-writes.ts',
    passage: 'THEN p.amount_minor ELSE 0 END',
    replacement: 'THEN 0 ELSE 0 END',
    tests: 'payouts/payment-resource/test/fencing.test.ts',
  },
  {
    broken: 'A post books one leg',
    rule: 'FR-25',
    file: 'payouts/payment-resource/src/holder-writes.ts',
    passage: `, -amount_minor),
                          ('CREDIT', 'clearing:' || currency, amount_minor))`,
    replacement: ', -amount_minor))',
    tests: 'payouts/payment-resource/test/ledger.test.ts',
  },
  {
    broken: 'An ambiguous payout fails before the settlement window is over',
    rule: 'FR-24',
    file: 'payouts/payment-resource/src/reconcile.ts',
    passage: 'transfer === undefined && ageMs > settlementWindowMs',
    replacement: 'transfer === undefined',
    tests: 'payouts/payout-executor/test/reconcile.test.ts',
  },
  {
    broken: 'An ambiguous payout is judged while its late request can still get through',
    rule: 'P-27',
    file: 'payouts/payment-resource/src/reconcile.ts',
    passage: "payout.state === 'RAIL_AMBIGUOUS' && claimToken !== undefined",
    replacement: 'payout.claimedBy === undefined && claimToken !== undefined',
    tests: 'payouts/payout-executor/test/reconcile.test.ts',
  },
]
