-- Immutable once released: a change is a new file with the next number.
-- No migration after this one ever touches the sequence (INV-04).

CREATE SEQUENCE fencing_token_seq AS bigint MINVALUE 1 NO CYCLE CACHE 1;

CREATE TABLE lock_session (
  session_id uuid        PRIMARY KEY,
  owner_id   text        NOT NULL,
  created_at timestamptz NOT NULL,
  -- Alive while this is in the future. '-infinity' once it was buried: it cannot be prolonged again.
  expires_at timestamptz NOT NULL,
  -- When it was buried.
  ended_at   timestamptz
) WITH (fillfactor = 70);

-- A row is a grant while expires_at is in the future and the session lives. When a grant ends, its
-- row stays, vacant (expires_at = '-infinity'), until the sweeper may remove it: docs/adr/0010.
CREATE TABLE lock_entry (
  lock_key      text        COLLATE "C" PRIMARY KEY,
  owner_id      text        NOT NULL,
  -- No foreign key: docs/adr/0011.
  session_id    uuid        NOT NULL,
  -- The highest number issued for the key, floors included.
  fencing_token bigint      NOT NULL CHECK (fencing_token > 0),
  acquired_at   timestamptz NOT NULL,
  expires_at    timestamptz NOT NULL,
  -- Somebody waits: the end of the grant is to be announced.
  wanted        boolean     NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- None on expires_at: every extension would write to it (docs/adr/0011).
CREATE INDEX lock_entry_session_idx ON lock_entry (session_id);

CREATE TABLE lock_revocation (
  revocation_id   bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  lock_key        text        COLLATE "C" NOT NULL,
  prev_owner      text        NOT NULL,
  prev_token      bigint      NOT NULL,
  new_token_floor bigint      NOT NULL CHECK (new_token_floor > prev_token),
  operator        text        NOT NULL,
  reason          text        NOT NULL,
  revoked_at      timestamptz NOT NULL
);

CREATE FUNCTION lock_revocation_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'lock_revocation is append-only';
END
$$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON lock_revocation
  FOR EACH STATEMENT EXECUTE FUNCTION lock_revocation_is_append_only();
