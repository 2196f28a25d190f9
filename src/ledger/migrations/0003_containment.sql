-- Containment: the breaker of each service, and what the fleet saw of it.

CREATE TYPE redrive.breaker_state AS ENUM ('closed', 'open', 'half_open', 'isolated');

-- Written when something changes: a service that never failed has no row. A move is a compare-and-set on `version`;
-- permits and reports of probes change their counters only.
CREATE TABLE redrive.breaker (
  service          text COLLATE "C" PRIMARY KEY,
  state            redrive.breaker_state NOT NULL DEFAULT 'closed',
  since            timestamptz NOT NULL,
  open_until       timestamptz,
  openings         integer     NOT NULL DEFAULT 0,
  permits          integer     NOT NULL DEFAULT 0,
  permits_since    timestamptz NOT NULL,
  probes_succeeded integer     NOT NULL DEFAULT 0,
  probes_failed    integer     NOT NULL DEFAULT 0,
  version          integer     NOT NULL DEFAULT 1,
  shadow           boolean     NOT NULL DEFAULT false,
  reason           text        NOT NULL,
  changed_by       text        NOT NULL,
  settings         json,
  settings_version integer     NOT NULL DEFAULT 0,
  CONSTRAINT breaker_open_until CHECK ((state = 'open') = (open_until IS NOT NULL)),
  CONSTRAINT breaker_counters CHECK (openings >= 0 AND permits >= 0 AND probes_succeeded >= 0 AND probes_failed >= 0)
) WITH (fillfactor = 50);

-- What each process saw of a service, in slices of time: each adds to rows of its own, about once a second and only if
-- there is something to say, so no two ever wait for one row. `run`: its failures in a row, since `run_since`.
CREATE TABLE redrive.service_window (
  service         text COLLATE "C" NOT NULL,
  at              timestamptz NOT NULL,
  source          uuid        NOT NULL,
  first_attempts  integer     NOT NULL,
  retries         integer     NOT NULL,
  succeeded       integer     NOT NULL,
  failed          integer     NOT NULL,
  run             integer     NOT NULL,
  run_since       timestamptz,
  last_success_at timestamptz,
  PRIMARY KEY (service, at, source)
) WITH (fillfactor = 50);
CREATE INDEX service_window_time ON redrive.service_window (at);
