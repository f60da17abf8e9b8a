-- The high-water mark of every account and every attempt to submit a payout. The same tables as
-- FENCE_TABLE and ATTEMPT_TABLE of @dlock/guard, written out because a migration never changes.
CREATE TABLE dlock_fence (
  lock_key  TEXT COLLATE "C" PRIMARY KEY,
  fence     BIGINT NOT NULL CHECK (fence > 0),
  raised_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE dlock_attempt (
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
CREATE UNIQUE INDEX dlock_attempt_forwardable ON dlock_attempt (idempotency_key)
  WHERE guarded AND outcome IN ('UNRESOLVED', 'ACKED', 'REJECTED', 'TIMEOUT');
CREATE INDEX dlock_attempt_key ON dlock_attempt (idempotency_key, attempted_at);
