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
const ETCD = 'packages/store-etcd/src'
const LATE = 'packages/store-etcd/test/late-answers.test.ts'

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
    broken: '`extend` says lost on a pool time-out',
    rule: 'P-19',
    file: `${STORE}/postgres-store.ts`,
    passage: 'return this.#extensions.ask({ key, fencingToken, ttlMs })',
    replacement: 'return this.#extensions.ask({ key, fencingToken, ttlMs }).catch(() => undefined)',
    tests: 'packages/store-postgres/test/deadlines.test.ts',
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
  {
    broken: 'An HTTP caller that disconnects goes on waiting',
    rule: 'L4: who goes away leaves no grant',
    file: 'packages/lock-server/src/http-server.ts',
    passage: 'if (!reply.raw.writableFinished) call.abandon(callerGone())',
    replacement: '',
    tests: 'packages/lock-server/test/disconnect.test.ts',
  },
  {
    broken: 'A connection that drops leaves its waits, and their grants, behind',
    rule: 'L4: who goes away leaves no grant',
    file: 'packages/lock-server/src/connection.ts',
    passage: 'for (const call of this.#inFlight.values()) call.abandon(callerGone())',
    replacement: '',
    tests: 'packages/lock-server/test/disconnect.test.ts',
  },
  {
    broken: 'A store that is down is said to be a lock that is held',
    rule: 'P-15',
    file: 'packages/protocol/src/failures.ts',
    passage: "retryAfterMs === undefined ? 'STORE_UNAVAILABLE' : 'CONTENTION_EXCEEDED'",
    replacement: "'LOCK_CONTENDED'",
    tests: 'packages/lock-server/test/store-down.test.ts',
  },
  {
    broken: 'A renewal that failed for a moment is said to be lost',
    rule: 'P-19',
    file: 'packages/lock-server/src/session-handlers.ts',
    passage: 'if (error instanceof RetryableLockError) return undefined',
    replacement: "if (error instanceof RetryableLockError) return 'lost' as never",
    tests: 'packages/lock-server/test/store-down.test.ts',
  },
  {
    broken: 'A token is taken in any spelling',
    rule: 'P-25',
    file: 'packages/protocol/src/fields.ts',
    passage: `    pattern: FENCING_TOKEN_PATTERN.source,
`,
    replacement: '',
    tests: 'packages/protocol/test/fencing-token.test.ts',
  },
  {
    broken: 'A session acts for whoever knows it, whatever name they give',
    rule: 'FR-04',
    file: 'packages/lock-server/src/handlers.ts',
    passage:
      "if (session.state === 'live' && session.ownerId !== ownerId) throw notYours('session')",
    replacement: '',
    tests: 'packages/lock-server/test/calls.test.ts',
  },
  {
    broken: 'Anybody who has seen a token releases its lock',
    rule: 'FR-05',
    file: 'packages/lock-server/src/lock-handlers.ts',
    passage:
      "if (info?.fencingToken === token && info.ownerId !== context.ownerId) throw notYours('grant')",
    replacement: '',
    tests: 'packages/lock-server/test/calls.test.ts',
  },
  {
    broken: 'A metric has an open label',
    rule: 'NFR-09',
    file: 'packages/lock-server/src/lock-metrics.ts',
    passage: 'this.#acquire.observe({ backend: this.#backend, outcome }, seconds)',
    replacement: 'this.#acquire.observe({ backend: `pg-${seconds}`, outcome }, seconds)',
    tests: 'packages/lock-server/test/metrics.test.ts',
  },
  {
    broken: 'The log holds a session’s id',
    rule: 'NFR-08',
    file: 'packages/lock-server/src/handlers.ts',
    passage: 'ownerId: context.ownerId, ...what',
    replacement: 'ownerId: context.ownerId, input: context.call.spelled.input, ...what',
    tests: 'packages/lock-server/test/log.test.ts',
  },
  {
    broken: 'A bug tells the caller its words',
    rule: 'never a stack trace',
    file: 'packages/protocol/src/failures.ts',
    passage:
      "return new Failure('INTERNAL', 'the server failed; its log has more under this trace id')",
    replacement: "return new Failure('INTERNAL', String((error as Error).stack))",
    tests: 'packages/lock-server/test/store-down.test.ts',
  },
  {
    broken: 'A server that shuts down goes on granting',
    rule: 'shutting down refuses new waits',
    file: 'packages/lock-server/src/lock-handlers.ts',
    passage: 'if (desk.isClosing()) throw shuttingDown()',
    replacement: '',
    tests: 'packages/lock-server/test/shutdown.test.ts',
  },
  {
    broken: 'The OpenAPI document describes other schemas than the ones that check',
    rule: 'one schema for both',
    file: 'packages/lock-server/src/openapi.ts',
    passage: `schema: input.properties[field],
  })`,
    replacement: `schema: { type: 'string' },
  })`,
    tests: 'packages/lock-server/test/openapi.test.ts',
  },
  {
    broken: 'A server without authentication listens to the network',
    rule: 'loopback, or said aloud',
    file: 'packages/lock-server/src/lock-server.ts',
    passage: 'if (isLoopback || isSettled) return',
    replacement: 'if (isLoopback || isSettled || host) return',
    tests: 'packages/lock-server/test/listen.test.ts',
  },
  {
    broken: 'etcd: a keep-alive counts as a renewal',
    rule: 'INV-06',
    file: `${ETCD}/extend.ts`,
    passage: `    const slot = await state.slots.leaseFor(ttlMs)
`,
    replacement: `    const stored = await state.client.range({ key: Buffer.from(keys.ttl(key)) })
    const lease = stored.items[0]?.lease
    if (lease !== undefined) {
      await state.client.leaseKeepAlive(lease)
      return 'moved'
    }
    const slot = await state.slots.leaseFor(ttlMs)
`,
    tests: 'packages/store-etcd/test/frozen-leader.test.ts',
  },
  {
    broken: 'etcd: a renewal moves the TTL marker without comparing where it is',
    rule: 'INV-06',
    file: `${ETCD}/extend.ts`,
    passage: `          unchangedSince(keys.ttl(key), grant.ttlRevision),
`,
    replacement: '',
    tests: LATE,
  },
  {
    broken: 'etcd: a heartbeat moves the session marker without comparing where it is',
    rule: 'INV-06',
    file: `${ETCD}/sessions.ts`,
    passage: 'compare: [unchangedSince(name, session.markerRevision)],',
    replacement: 'compare: [exists(name)],',
    tests: LATE,
  },
  {
    broken: 'etcd: an acquire whose answer was lost is read back, and not fenced off',
    rule: 'INV-01',
    file: `${ETCD}/try-insert.ts`,
    passage: "put(state.keys.fence(attempt.name), '', attempt.slot),",
    replacement: 'get(state.keys.fence(attempt.name)),',
    tests: LATE,
  },
  {
    broken: 'etcd: a renewal without an answer is said to be lost',
    rule: 'P-19',
    file: `${ETCD}/extend.ts`,
    passage: "if (!(error instanceof EtcdError && error.kind === 'lease-gone')) throw error",
    replacement:
      "if (!(error instanceof EtcdError && error.kind === 'lease-gone')) return undefined",
    tests: LATE,
  },
  {
    broken: 'etcd: a release ignores the token',
    rule: 'P-16',
    file: `${ETCD}/delete-if-owner.ts`,
    passage: 'compare: [unchangedSince(keys.lock(key), grant.lockRevision)],',
    replacement: 'compare: [],',
    tests: LATE,
  },
  {
    broken: 'etcd: the token is read again after a renewal',
    rule: 'FR-06',
    file: `${ETCD}/extend.ts`,
    passage: "if (moved === 'moved') return state.handleOf(key, grant, sentNanos, granted)",
    replacement: `if (moved === 'moved') {
      const fencingToken = state.grants.get(key)?.ttlRevision ?? 1n
      return state.handleOf(key, { ...grant, fencingToken }, sentNanos, granted)
    }`,
    tests: LATE,
  },
  {
    broken: 'etcd: a watch that lost its connection goes on from now',
    rule: 'no missed release',
    file: `${ETCD}/client/delete-watch.ts`,
    passage: 'startRevision: String(this.#nextRevision),',
    replacement: "startRevision: '0',",
    tests: 'packages/store-etcd/test/cluster-faults.test.ts',
  },
  {
    broken: 'etcd: a cluster that was restored is not noticed',
    rule: 'INV-04',
    file: `${ETCD}/epoch.ts`,
    passage: 'if (BigInt(revision) < revisionBefore) {',
    replacement: 'if (BigInt(revision) < 0n) {',
    tests: 'packages/store-etcd/test/cluster-faults.test.ts',
  },
  {
    broken: 'etcd: a grant passes the processes by that wait longer',
    rule: 'first in, first out',
    file: `${ETCD}/try-insert.ts`,
    passage: `    nobodyBefore(state, attempt.key),
`,
    replacement: '',
    tests: 'packages/store-etcd/test/queue.test.ts',
  },
  {
    broken: 'The embedded PostgreSQL acknowledges before it has written',
    rule: 'INV-04',
    file: 'packages/local-postgres/dist/local-postgres.js',
    passage: "synchronous_commit: 'on'",
    replacement: "synchronous_commit: 'off'",
    tests: 'apps/lockd/test/restart.test.ts',
  },
  {
    broken: '`dlock run` asks a command that lost its lock to stop, and no more',
    rule: 'P-07',
    file: 'packages/cli/dist/run.js',
    passage: 'after(lastHeld.safeForMs(), shell.clock)',
    replacement: 'after(60_000, shell.clock)',
    tests: 'packages/cli/test/run.test.ts',
  },
  {
    broken: '`dlock run` kills the command, and not its children',
    rule: 'P-07',
    file: 'packages/cli/dist/process-group.js',
    passage: "this.#send('SIGKILL');",
    replacement: "process.kill(this.#id, 'SIGKILL');",
    tests: 'packages/cli/test/run.test.ts',
  },
  {
    broken: '`dlock run` takes a loss for as old as its discovery',
    rule: 'P-12',
    file: 'packages/cli/src/last-held.ts',
    passage: 'return this.#marginMs - Number(running > all ? running : all) / 1e6',
    replacement: 'return this.#marginMs',
    tests: 'packages/cli/test/last-held.test.ts',
  },
  {
    broken: 'A command outlives a `dlock run` that was killed',
    rule: 'P-08',
    file: 'packages/cli/dist/process-group.js',
    passage: 'read -r _; kill',
    replacement: 'read -r _; : kill',
    tests: 'packages/cli/test/run.test.ts',
  },
]
