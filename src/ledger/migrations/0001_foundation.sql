-- The ledger's foundation. Written for the default schema `redrive`; another name is put in its place when it
-- is applied (ledger/schema-name.ts). Enums and CHECKs mirror src/domain/lifecycle.ts; a test compares them.

CREATE TYPE redrive.job_state AS ENUM
  ('scheduled', 'waiting', 'active', 'retrying', 'held', 'completed', 'dead', 'cancelled');

CREATE TYPE redrive.failure_kind AS ENUM
  ('transient', 'rate_limited', 'network', 'system', 'permanent', 'validation', 'authentication', 'lost');

CREATE TYPE redrive.attempt_outcome AS ENUM
  ('succeeded', 'failed', 'snoozed', 'cancelled', 'timed_out', 'interrupted', 'lost');

CREATE TYPE redrive.decision AS ENUM ('complete', 'retry', 'hold', 'bury', 'cancel', 'return');

CREATE TYPE redrive.recovery_status AS ENUM ('pending', 'redriving', 'recovered', 'permanently_failed');

-- Counts those who join a line: a job's place in line is its priority and then this. Given again when a delayed job
-- becomes due, so that the line is the order of becoming due.
CREATE SEQUENCE redrive.job_seq;

-- Lease tokens: one a claim, never repeated (invariant 2).
CREATE SEQUENCE redrive.lease_seq;

CREATE TABLE redrive.queue (
  name       text COLLATE "C" PRIMARY KEY,
  paused_at  timestamptz,
  paused_by  text,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);

-- What the code says about each job name of a queue, as its workers last announced it, with the settings of their
-- process: so that another one which does not know the job (a rescuer, an operator) decides by the same policy.
CREATE TABLE redrive.job_type (
  queue        text COLLATE "C" NOT NULL,
  name         text COLLATE "C" NOT NULL,
  service      text,
  policy       json        NOT NULL,
  settings     json        NOT NULL,
  announced_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (queue, name)
);

-- One run of one worker. Its row is the lease of all the jobs it holds (invariant 3).
CREATE TABLE redrive.session (
  id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  worker     text        NOT NULL,
  host       text        NOT NULL,
  pid        integer     NOT NULL,
  version    text,
  queues     json        NOT NULL,
  concurrency integer    NOT NULL,
  started_at timestamptz NOT NULL,
  renewed_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  ended_at   timestamptz,
  ended_by   text,
  -- When somebody last looked for jobs that it left behind; cleared when none was left and no late claim could come.
  searched_at timestamptz,
  cleared_at timestamptz,
  CONSTRAINT session_cleared CHECK (cleared_at IS NULL OR ended_at IS NOT NULL),
  CONSTRAINT session_end CHECK ((ended_at IS NULL) = (ended_by IS NULL)),
  CONSTRAINT session_ended_by CHECK (ended_by IN ('stopped', 'lapsed'))
);
CREATE INDEX session_open ON redrive.session (expires_at) WHERE ended_at IS NULL;
CREATE INDEX session_to_clear ON redrive.session (ended_at) WHERE ended_at IS NOT NULL AND cleared_at IS NULL;

-- Live jobs: only what will still run. Finished and dead jobs leave it (invariant 7). A claim changes no column that an
-- index knows, and finds room on the row's own page: it touches no index at all (docs/decisions/0009).
CREATE TABLE redrive.job (
  id                  uuid PRIMARY KEY,
  seq                 bigint            NOT NULL DEFAULT nextval('redrive.job_seq'),
  run_at              timestamptz       NOT NULL,
  created_at          timestamptz       NOT NULL,
  first_claimed_at    timestamptz,
  claimed_at          timestamptz,
  lease               bigint,
  session_id          bigint,
  attempt             integer           NOT NULL DEFAULT 0,
  snoozes             integer           NOT NULL DEFAULT 0,
  holds               integer           NOT NULL DEFAULT 0,
  interruptions       integer           NOT NULL DEFAULT 0,
  lost                smallint          NOT NULL DEFAULT 0,
  redrives            smallint          NOT NULL DEFAULT 0,
  max_attempts        smallint,
  priority            smallint          NOT NULL DEFAULT 5,
  started             boolean           NOT NULL DEFAULT false,
  in_line             boolean           NOT NULL DEFAULT true,
  state               redrive.job_state NOT NULL,
  queue               text COLLATE "C"  NOT NULL,
  name                text COLLATE "C"  NOT NULL,
  payload             json              NOT NULL,
  unique_key          text COLLATE "C",
  service             text,
  tenant              text,
  user_id             text,
  project             text,
  progress            json,
  cancel_requested_at timestamptz,
  cancel_reason       text,
  -- Which rate limit and key it is, or was last, held for (0004_rate_limits.sql).
  held_by             text COLLATE "C",
  -- The cause of its last failure: which group it waits in.
  fingerprint         text COLLATE "C",
  -- The higher priority first, then who came first; the same measure in every lane.
  line                bigint            NOT NULL GENERATED ALWAYS AS (((10 - priority)::bigint << 56) | seq) STORED,
  CONSTRAINT job_is_live CHECK (state IN ('scheduled', 'waiting', 'active', 'retrying', 'held')),
  CONSTRAINT job_in_line CHECK (in_line = (state IN ('waiting', 'active'))),
  CONSTRAINT job_leased_while_active CHECK
    ((state = 'active') = (lease IS NOT NULL AND session_id IS NOT NULL AND claimed_at IS NOT NULL)),
  CONSTRAINT job_lease_goes_with_state CHECK (state = 'active' OR (lease IS NULL AND session_id IS NULL)),
  CONSTRAINT job_counters CHECK (attempt >= 0 AND snoozes >= 0 AND holds >= 0 AND interruptions >= 0 AND lost >= 0),
  CONSTRAINT job_priority CHECK (priority BETWEEN 0 AND 10)
) WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX job_claimable ON redrive.job (queue, name, line) WHERE in_line;
CREATE INDEX job_due ON redrive.job (run_at, seq) WHERE NOT in_line;
CREATE INDEX job_by_fingerprint ON redrive.job (fingerprint) WHERE NOT in_line AND fingerprint IS NOT NULL;
CREATE INDEX job_cancel_requested ON redrive.job (cancel_requested_at) WHERE cancel_requested_at IS NOT NULL;
CREATE UNIQUE INDEX job_unique_key ON redrive.job (queue, unique_key) WHERE unique_key IS NOT NULL;

-- History: completed and cancelled jobs, a partition a day, dropped whole by retention. The default partition
-- only catches a day whose own partition is missing, so that settling never fails for want of one.
CREATE TABLE redrive.finished_job (
  id               uuid              NOT NULL,
  finished_at      timestamptz       NOT NULL,
  created_at       timestamptz       NOT NULL,
  first_claimed_at timestamptz,
  claimed_at       timestamptz,
  session_id       bigint,
  attempt          integer           NOT NULL,
  snoozes          integer           NOT NULL,
  holds            integer           NOT NULL,
  interruptions    integer           NOT NULL,
  lost             smallint          NOT NULL,
  redrives         smallint          NOT NULL,
  max_attempts     smallint,
  priority         smallint          NOT NULL,
  state            redrive.job_state NOT NULL,
  queue            text COLLATE "C"  NOT NULL,
  name             text COLLATE "C"  NOT NULL,
  payload          json              NOT NULL,
  result           json,
  reason           text,
  unique_key       text COLLATE "C",
  service          text,
  tenant           text,
  user_id          text,
  project          text,
  CONSTRAINT finished_job_is_finished CHECK (state IN ('completed', 'cancelled'))
) PARTITION BY RANGE (finished_at);
CREATE INDEX finished_job_id ON redrive.finished_job (id);
CREATE TABLE redrive.finished_job_default PARTITION OF redrive.finished_job DEFAULT;

-- Every attempt that did not simply succeed, with its error. A success is its job's row in the history.
CREATE TABLE redrive.attempt (
  job_id         uuid                    NOT NULL,
  lease          bigint                  NOT NULL,
  number         integer                 NOT NULL,
  round          smallint                NOT NULL,
  started_at     timestamptz,
  finished_at    timestamptz             NOT NULL,
  next_run_at    timestamptz,
  delay_ms       bigint,
  session_id     bigint,
  http_status    smallint,
  retry_after_ms bigint,
  outcome        redrive.attempt_outcome NOT NULL,
  decision       redrive.decision        NOT NULL,
  kind           redrive.failure_kind,
  queue          text COLLATE "C"        NOT NULL,
  name           text COLLATE "C"        NOT NULL,
  reason         text                    NOT NULL,
  because        text,
  error_type     text,
  error_code     text,
  message        text,
  stack          text,
  causes         json,
  service        text,
  fingerprint    text,
  stale_outcome  redrive.attempt_outcome,
  stale_at       timestamptz,
  PRIMARY KEY (job_id, lease),
  CONSTRAINT attempt_failure CHECK (outcome NOT IN ('failed', 'timed_out', 'lost') OR (kind IS NOT NULL AND message IS NOT NULL))
);
CREATE INDEX attempt_time ON redrive.attempt (finished_at);

-- Jobs that will not run again by themselves, with all a person needs to decide. The id is the job's own. The stack and
-- the rest of the error are those of the attempt it died of (`lease`), which is kept as long as its dead letter.
CREATE TABLE redrive.dead_letter (
  id                uuid PRIMARY KEY,
  seq               bigint                  NOT NULL DEFAULT nextval('redrive.job_seq'),
  lease             bigint                  NOT NULL,
  died_at           timestamptz             NOT NULL,
  updated_at        timestamptz             NOT NULL,
  redriven_at       timestamptz,
  resolved_at       timestamptz,
  job_created_at    timestamptz             NOT NULL,
  total_attempts    integer                 NOT NULL,
  recovery_attempts integer                 NOT NULL DEFAULT 0,
  max_attempts      smallint,
  lost              smallint                NOT NULL,
  redrives          smallint                NOT NULL,
  job_priority      smallint                NOT NULL,
  priority          smallint                NOT NULL DEFAULT 5,
  http_status       smallint,
  status            redrive.recovery_status NOT NULL DEFAULT 'pending',
  outcome           redrive.attempt_outcome NOT NULL,
  kind              redrive.failure_kind    NOT NULL,
  queue             text COLLATE "C"        NOT NULL,
  name              text COLLATE "C"        NOT NULL,
  payload           json                    NOT NULL,
  reason            text                    NOT NULL,
  message           text                    NOT NULL,
  fingerprint       text COLLATE "C"        NOT NULL,
  service           text COLLATE "C",
  unique_key        text COLLATE "C",
  tenant            text,
  user_id           text,
  project           text,
  notes             text,
  assigned_to       text COLLATE "C",
  resolution        text,
  -- How often each triage rule did something about it, and when the rules should look at it again (0006_triage.sql).
  triaged           jsonb,
  triage_at         timestamptz,
  CONSTRAINT dead_letter_resolved CHECK ((resolved_at IS NOT NULL) = (status IN ('recovered', 'permanently_failed'))),
  CONSTRAINT dead_letter_priority CHECK (priority BETWEEN 0 AND 10)
);
-- Each death pays for each index. They end in the order of the desk, newest death first, so that a page and a range of
-- time are read in order; a status, or a kind, that is not asked for is merged (ledger/dead-letter-search.ts).
CREATE INDEX dead_letter_by_status ON redrive.dead_letter (status, kind, died_at, seq);
CREATE INDEX dead_letter_by_queue ON redrive.dead_letter (queue, status, died_at, seq);
CREATE INDEX dead_letter_by_name ON redrive.dead_letter (name, status, died_at, seq);
CREATE INDEX dead_letter_by_fingerprint ON redrive.dead_letter (fingerprint, status, died_at, seq);
CREATE INDEX dead_letter_by_service ON redrive.dead_letter (service, status, died_at, seq) WHERE service IS NOT NULL;
CREATE INDEX dead_letter_by_assigned_to ON redrive.dead_letter (assigned_to, status, died_at, seq) WHERE assigned_to IS NOT NULL;
CREATE INDEX dead_letter_by_resolved ON redrive.dead_letter (resolved_at) WHERE resolved_at IS NOT NULL;
CREATE INDEX dead_letter_to_triage ON redrive.dead_letter (triage_at) WHERE triage_at IS NOT NULL;
CREATE INDEX dead_letter_counts ON redrive.dead_letter (queue, status, kind);

-- Counts of what ended, so that statistics never count history. Each settling lane adds to rows of its own
-- (`shard`), so that no two ever wait for one row; the janitor folds those of ended sessions into shard 0.
CREATE TABLE redrive.tally (
  queue     text COLLATE "C" NOT NULL,
  day       date             NOT NULL,
  shard     bigint           NOT NULL,
  completed bigint           NOT NULL DEFAULT 0,
  cancelled bigint           NOT NULL DEFAULT 0,
  failed    bigint           NOT NULL DEFAULT 0,
  dead      bigint           NOT NULL DEFAULT 0,
  PRIMARY KEY (queue, day, shard)
) WITH (fillfactor = 50);

CREATE TABLE redrive.recovery_run (
  id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  cause       text        NOT NULL,
  worker      text        NOT NULL,
  status      text        NOT NULL DEFAULT 'running',
  started_at  timestamptz NOT NULL,
  alive_at    timestamptz NOT NULL,
  finished_at timestamptz,
  rescued     integer     NOT NULL DEFAULT 0,
  promoted    integer     NOT NULL DEFAULT 0,
  buried      integer     NOT NULL DEFAULT 0,
  triaged     integer     NOT NULL DEFAULT 0,
  cleaned     bigint      NOT NULL DEFAULT 0,
  expired     bigint      NOT NULL DEFAULT 0,
  error       text,
  CONSTRAINT recovery_run_cause CHECK (cause IN ('schedule', 'demand', 'lapsed_session')),
  CONSTRAINT recovery_run_status CHECK (status IN ('running', 'succeeded', 'failed')),
  CONSTRAINT recovery_run_end CHECK ((status = 'running') = (finished_at IS NULL))
);
CREATE INDEX recovery_run_running ON redrive.recovery_run (alive_at) WHERE status = 'running';

CREATE TABLE redrive.audit (
  id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at          timestamptz NOT NULL,
  actor       text        NOT NULL,
  action      text        NOT NULL,
  target_type text        NOT NULL,
  target      text        NOT NULL,
  before      json,
  after       json,
  reason      text
);
CREATE INDEX audit_target ON redrive.audit (target_type, target, id);

-- Makes the partition of one day, if it can be made now: a busy table or a day that already has rows in the
-- default partition is left for another time. Attaching, unlike creating in place, does not block inserts.
CREATE FUNCTION redrive.ensure_history_day(of_day date) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  partition text := 'finished_job_' || to_char(of_day, 'YYYYMMDD');
BEGIN
  IF to_regclass(format('%I.%I', 'redrive_schema_name', partition)) IS NOT NULL THEN
    RETURN false;
  END IF;
  PERFORM set_config('lock_timeout', '2s', true);
  EXECUTE format('CREATE TABLE redrive.%I (LIKE redrive.finished_job INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', partition);
  EXECUTE format('CREATE INDEX ON redrive.%I (id)', partition);
  EXECUTE format('ALTER TABLE redrive.finished_job ATTACH PARTITION redrive.%I FOR VALUES FROM (%L) TO (%L)',
                 partition, of_day::timestamp AT TIME ZONE 'UTC', (of_day + 1)::timestamp AT TIME ZONE 'UTC');
  RETURN true;
EXCEPTION
  WHEN duplicate_table OR unique_violation OR lock_not_available OR check_violation THEN
    RETURN false;
END $$;

-- Drops the partitions of whole days before `first_kept`; returns how many. One that is in use waits its turn.
CREATE FUNCTION redrive.drop_history_before(first_kept date) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  partition record;
  dropped integer := 0;
BEGIN
  PERFORM set_config('lock_timeout', '2s', true);
  FOR partition IN
    SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = to_regclass('redrive.finished_job')
      AND c.relname ~ '^finished_job_[0-9]{8}$' AND to_date(right(c.relname, 8), 'YYYYMMDD') < first_kept
  LOOP
    BEGIN
      EXECUTE format('DROP TABLE redrive.%I', partition.relname);
      dropped := dropped + 1;
    EXCEPTION WHEN lock_not_available THEN NULL;
    END;
  END LOOP;
  RETURN dropped;
END $$;

-- Views for people who live in psql.

CREATE VIEW redrive.dead_letter_queue_summary AS
SELECT queue AS queue_name,
       count(*) AS total_failed_jobs,
       count(*) FILTER (WHERE status = 'pending') AS pending_recovery,
       count(*) FILTER (WHERE status = 'redriving') AS redriving,
       count(*) FILTER (WHERE status = 'recovered') AS recovered,
       count(*) FILTER (WHERE status = 'permanently_failed') AS permanently_failed
FROM redrive.dead_letter GROUP BY queue;

CREATE VIEW redrive.queue_statistics AS
WITH live AS (
  SELECT queue,
         count(*) FILTER (WHERE state = 'waiting') AS waiting,
         count(*) FILTER (WHERE state = 'active') AS active,
         count(*) FILTER (WHERE state = 'scheduled') AS scheduled,
         count(*) FILTER (WHERE state = 'retrying') AS retrying,
         count(*) FILTER (WHERE state = 'held') AS held,
         min(run_at) FILTER (WHERE state = 'waiting') AS oldest_waiting_at
  FROM redrive.job GROUP BY queue
), ended AS (
  SELECT queue, sum(completed) AS completed, sum(cancelled) AS cancelled FROM redrive.tally GROUP BY queue
), dead AS (
  SELECT queue, count(*) AS dead FROM redrive.dead_letter
  WHERE status IN ('pending', 'permanently_failed') GROUP BY queue
)
SELECT q.name AS queue_name,
       coalesce(live.waiting, 0) AS waiting_count,
       coalesce(live.active, 0) AS active_count,
       coalesce(ended.completed, 0)::bigint AS completed_count,
       coalesce(dead.dead, 0) AS failed_count,
       coalesce(live.retrying, 0) AS retryable_count,
       coalesce(live.scheduled, 0) AS scheduled_count,
       coalesce(live.held, 0) AS held_count,
       coalesce(ended.cancelled, 0)::bigint AS cancelled_count,
       live.oldest_waiting_at,
       q.paused_at IS NOT NULL AS paused
FROM redrive.queue q
LEFT JOIN live ON live.queue = q.name
LEFT JOIN ended ON ended.queue = q.name
LEFT JOIN dead ON dead.queue = q.name;

CREATE VIEW redrive.failed_jobs AS
SELECT id, id AS job_id, name AS job_type, status::text AS status, total_attempts AS attempts, max_attempts,
       message AS last_error,
       (SELECT a.stack FROM redrive.attempt a WHERE a.job_id = d.id AND a.lease = d.lease) AS error_stacktrace,
       payload AS input_data, died_at AS created_at, updated_at
FROM redrive.dead_letter d;

CREATE VIEW redrive.dead_letter_queue AS
SELECT id, id AS original_job_id, queue AS original_queue_name, name AS original_job_name,
       payload AS original_job_data, reason AS failure_reason, kind::text AS failure_kind, message AS error_message,
       (SELECT a.stack FROM redrive.attempt a WHERE a.job_id = d.id AND a.lease = d.lease) AS error_stacktrace,
       total_attempts, status::text AS recovery_status, recovery_attempts, notes AS admin_notes, assigned_to, priority,
       died_at AS created_at, updated_at, resolved_at
FROM redrive.dead_letter d;

CREATE VIEW redrive.queue_retry_log AS
SELECT job_id, queue AS queue_name, number AS attempt_number, outcome::text AS outcome, kind::text AS kind,
       message AS error_message, delay_ms AS retry_delay_ms, next_run_at AS next_retry_at, finished_at AS created_at
FROM redrive.attempt;

CREATE VIEW redrive.queue_recovery_runs AS
SELECT id, cause, worker, status, started_at, finished_at,
       (extract(epoch FROM finished_at - started_at) * 1000)::bigint AS duration_ms,
       rescued, promoted, buried, triaged, cleaned, expired, error
FROM redrive.recovery_run;
