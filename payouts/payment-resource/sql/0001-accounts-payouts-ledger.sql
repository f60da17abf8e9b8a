-- Money is BIGINT minor units. A fence never goes down; a balance and what is set aside never go
-- below zero, and no more is set aside than there is: the constraints say so, whatever the code does.
CREATE TABLE account (
  account_id     TEXT PRIMARY KEY,
  currency       TEXT NOT NULL,
  fence          BIGINT NOT NULL DEFAULT 0 CHECK (fence >= 0),
  balance_minor  BIGINT NOT NULL CHECK (balance_minor >= 0),
  reserved_minor BIGINT NOT NULL DEFAULT 0 CHECK (reserved_minor BETWEEN 0 AND balance_minor),
  created_at     TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE payout (
  payout_id       TEXT PRIMARY KEY,
  sequence        BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE,
  account_id      TEXT NOT NULL REFERENCES account,
  amount_minor    BIGINT NOT NULL CHECK (amount_minor > 0),
  currency        TEXT NOT NULL,
  beneficiary_ref TEXT NOT NULL,
  state           TEXT NOT NULL DEFAULT 'PENDING' CHECK (state IN
    ('PENDING', 'CLAIMED', 'RAIL_SUBMITTED', 'RAIL_ACKED', 'RAIL_AMBIGUOUS',
     'POSTED', 'FAILED', 'ABANDONED')),
  claimed_by      TEXT,
  claim_token     BIGINT CHECK (claim_token > 0),
  submission_id   TEXT,
  rail_reference  TEXT,
  reason          TEXT,
  created_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
  updated_at      TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE INDEX payout_state_idx ON payout (state, sequence);
CREATE INDEX payout_account_idx ON payout (account_id, sequence);

-- Who moved which payout when, and under which token (FR-30). Append-only.
CREATE TABLE payout_event (
  event_id   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  payout_id  TEXT NOT NULL REFERENCES payout,
  event      TEXT NOT NULL,
  to_state   TEXT NOT NULL,
  actor      TEXT NOT NULL,
  -- The fence that the account had when it happened; a holder's own token.
  fence      BIGINT NOT NULL,
  detail     TEXT,
  at         TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX payout_event_payout_idx ON payout_event (payout_id, event_id);

-- Entries of one transaction sum to zero. Accounts that are not in `account` (clearing, funding)
-- have no row that everybody would have to update: their balance is the sum of their entries.
CREATE TABLE ledger_entry (
  entry_id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  transaction_id TEXT NOT NULL,
  leg            TEXT NOT NULL CHECK (leg IN ('DEBIT', 'CREDIT')),
  account_id     TEXT NOT NULL,
  amount_minor   BIGINT NOT NULL CHECK (amount_minor <> 0),
  currency       TEXT NOT NULL,
  booked_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
  UNIQUE (transaction_id, leg)
);
CREATE INDEX ledger_entry_account_idx ON ledger_entry (account_id);

CREATE FUNCTION ledger_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the ledger is append-only';
END $$;
CREATE TRIGGER ledger_append_only BEFORE UPDATE OR DELETE ON ledger_entry
  FOR EACH ROW EXECUTE FUNCTION ledger_is_append_only();

-- A partial set of entries never commits (FR-25).
CREATE FUNCTION ledger_balances() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT count(*) <> 2 OR sum(amount_minor) <> 0
        FROM ledger_entry WHERE transaction_id = NEW.transaction_id) THEN
    RAISE EXCEPTION 'transaction % does not balance', NEW.transaction_id;
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER ledger_balanced AFTER INSERT ON ledger_entry
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ledger_balances();
