-- Who may ask over HTTP, and what was already answered. A token is known by its SHA-256 alone: whoever reads this table
-- cannot use what is in it.
CREATE TABLE redrive.token (
  name       text COLLATE "C" PRIMARY KEY,
  hash       text COLLATE "C" NOT NULL,
  scopes     json             NOT NULL,
  created_at timestamptz      NOT NULL,
  created_by text             NOT NULL,
  CONSTRAINT token_hash CHECK (hash ~ '^[0-9a-f]{64}$')
);
CREATE UNIQUE INDEX token_by_hash ON redrive.token (hash);

-- A request with an Idempotency-Key and its answer, for a day: asked again, it is answered again and nothing is done.
-- Without a status it is under way.
CREATE TABLE redrive.idempotency_key (
  token      text COLLATE "C" NOT NULL,
  key        text COLLATE "C" NOT NULL,
  request    text COLLATE "C" NOT NULL,
  status     smallint,
  body       text,
  expires_at timestamptz      NOT NULL,
  PRIMARY KEY (token, key)
);
CREATE INDEX idempotency_key_by_expiry ON redrive.idempotency_key (expires_at);
