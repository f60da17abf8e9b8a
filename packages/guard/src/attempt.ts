import type { PostgresClient } from './postgres-client.ts'

/**
 * What became of one attempt to present a request to the system behind the proxy.
 *
 * `UNRESOLVED`: committed, then nothing more was heard; the request may or may not have been
 * presented. `TIMEOUT`: it was presented, and no complete answer came back. Both mean unknown, for
 * ever, as far as this proxy can tell. `NOT_PRESENTED`: proven never to have reached the system.
 * `FENCED` and `DUPLICATE` were refused here.
 */
export type AttemptOutcome =
  | 'UNRESOLVED'
  | 'ACKED'
  | 'REJECTED'
  | 'TIMEOUT'
  | 'NOT_PRESENTED'
  | 'FENCED'
  | 'DUPLICATE'

/** One attempt, as it is on record. Times are the database's, for people. */
export interface Attempt {
  readonly attemptId: string
  readonly idempotencyKey: string
  readonly lockKey: string
  readonly fencingToken: bigint
  readonly ownerId: string
  readonly outcome: AttemptOutcome
  /** What the system behind calls the effect, when it said so. */
  readonly reference: string | undefined
  /** Why, in a few words, for people. */
  readonly detail: string | undefined
  readonly attemptedAt: Date
  readonly resolvedAt: Date | undefined
}

/**
 * Every attempt, refused ones too, append-only but for the one step from UNRESOLVED to an outcome.
 * The unique index is what holds "at most one forwarded attempt per idempotency key": no read
 * decides it, so no two replicas can both be right (FR-18). `guarded` is false for attempts made
 * while the guard was switched off; they are outside the index and say so for ever.
 *
 * For a migration of the application's own, beside `FENCE_TABLE`; it may be applied again.
 */
export const ATTEMPT_TABLE: string = `CREATE TABLE IF NOT EXISTS dlock_attempt (
  attempt_id      UUID PRIMARY KEY,
  idempotency_key TEXT COLLATE "C" NOT NULL,
  lock_key        TEXT COLLATE "C" NOT NULL,
  fencing_token   BIGINT NOT NULL CHECK (fencing_token > 0),
  owner_id        TEXT NOT NULL,
  outcome         TEXT NOT NULL CHECK (outcome IN
    ('UNRESOLVED', 'ACKED', 'REJECTED', 'TIMEOUT', 'NOT_PRESENTED', 'FENCED', 'DUPLICATE')),
  guarded         BOOLEAN NOT NULL,
  reference       TEXT,
  detail          TEXT,
  attempted_at    TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  resolved_at     TIMESTAMPTZ
);
CREATE UNIQUE INDEX IF NOT EXISTS dlock_attempt_forwardable ON dlock_attempt (idempotency_key)
  WHERE guarded AND outcome IN ('UNRESOLVED', 'ACKED', 'REJECTED', 'TIMEOUT');
CREATE INDEX IF NOT EXISTS dlock_attempt_key ON dlock_attempt (idempotency_key, attempted_at)`

/** The columns of an attempt that its maker decides. */
export interface NewAttempt {
  readonly attemptId: string
  readonly idempotencyKey: string
  readonly lockKey: string
  readonly fencingToken: bigint
  readonly ownerId: string
}

/** Takes the only forwardable place of the idempotency key; `false` when it is taken. */
export async function insertUnresolved(
  client: PostgresClient,
  attempt: NewAttempt,
  guarded: boolean,
): Promise<boolean> {
  const { rows } = await client.query(
    `${INSERT} VALUES ($1, $2, $3, $4::bigint, $5, 'UNRESOLVED', $6, NULL)
     ON CONFLICT (idempotency_key)
       WHERE guarded AND outcome IN ('UNRESOLVED', 'ACKED', 'REJECTED', 'TIMEOUT')
       DO NOTHING
     RETURNING attempt_id`,
    [...valuesOf(attempt), guarded],
  )
  return rows.length === 1
}

/** Records an attempt that was refused here (FR-16, FR-30). */
export async function insertRefused(
  client: PostgresClient,
  attempt: NewAttempt,
  outcome: 'FENCED' | 'DUPLICATE',
  detail: string,
): Promise<void> {
  await client.query(`${INSERT} VALUES ($1, $2, $3, $4::bigint, $5, $6, true, $7)`, [
    ...valuesOf(attempt),
    outcome,
    detail,
  ])
}

/** The one step out of UNRESOLVED. Made again, it changes nothing. */
export async function resolveAttempt(
  client: PostgresClient,
  attemptId: string,
  outcome: 'ACKED' | 'REJECTED' | 'TIMEOUT' | 'NOT_PRESENTED',
  reference: string | undefined,
  detail: string | undefined,
): Promise<void> {
  await client.query(
    `UPDATE dlock_attempt
        SET outcome = $2, reference = $3, detail = $4, resolved_at = clock_timestamp()
      WHERE attempt_id = $1 AND outcome = 'UNRESOLVED'`,
    [attemptId, outcome, reference ?? null, detail ?? null],
  )
}

/** The attempt that holds the key's forwardable place, if any. */
export async function forwardableAttempt(
  client: PostgresClient,
  idempotencyKey: string,
): Promise<Attempt | undefined> {
  const { rows } = await client.query(
    `${SELECT} WHERE idempotency_key = $1
       AND guarded AND outcome IN ('UNRESOLVED', 'ACKED', 'REJECTED', 'TIMEOUT')`,
    [idempotencyKey],
  )
  return rows.map(toAttempt)[0]
}

/** Every attempt of one idempotency key, oldest first; at most 1 000. */
export async function attemptsOf(
  client: PostgresClient,
  idempotencyKey: string,
): Promise<readonly Attempt[]> {
  const { rows } = await client.query(
    `${SELECT} WHERE idempotency_key = $1 ORDER BY attempted_at, attempt_id LIMIT 1000`,
    [idempotencyKey],
  )
  return rows.map(toAttempt)
}

const INSERT = `INSERT INTO dlock_attempt
  (attempt_id, idempotency_key, lock_key, fencing_token, owner_id, outcome, guarded, detail)`
const SELECT = `SELECT attempt_id, idempotency_key, lock_key, fencing_token::text, owner_id, outcome,
  reference, detail, attempted_at, resolved_at FROM dlock_attempt`

function valuesOf(attempt: NewAttempt): unknown[] {
  return [
    attempt.attemptId,
    attempt.idempotencyKey,
    attempt.lockKey,
    attempt.fencingToken.toString(),
    attempt.ownerId,
  ]
}

interface AttemptRow {
  readonly attempt_id: string
  readonly idempotency_key: string
  readonly lock_key: string
  readonly fencing_token: string
  readonly owner_id: string
  readonly outcome: AttemptOutcome
  readonly reference: string | null
  readonly detail: string | null
  readonly attempted_at: Date
  readonly resolved_at: Date | null
}

function toAttempt(row: unknown): Attempt {
  const {
    attempt_id: attemptId,
    idempotency_key: idempotencyKey,
    lock_key: lockKey,
    fencing_token: fencingToken,
    owner_id: ownerId,
    outcome,
    reference,
    detail,
    attempted_at: attemptedAt,
    resolved_at: resolvedAt,
  } = row as AttemptRow
  return {
    attemptId,
    idempotencyKey,
    lockKey,
    fencingToken: BigInt(fencingToken),
    ownerId,
    outcome,
    reference: reference ?? undefined,
    detail: detail ?? undefined,
    attemptedAt,
    resolvedAt: resolvedAt ?? undefined,
  }
}
