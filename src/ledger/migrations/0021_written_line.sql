-- A job's place in line is written by whoever puts it there (docs/decisions/0032). As a generated column it was worked out from priority
-- and number for every row, and its definition was read anew by every statement: a tenth of what a batch of new jobs costs,
-- and 13 µs of a single one.

-- Higher priorities first, then by number.
CREATE FUNCTION redrive.line_of(priority smallint, number bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT ((10 - priority)::bigint << 56) | number
$$;

-- The next place in line for a job of this priority.
CREATE FUNCTION redrive.next_line(priority smallint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT redrive.line_of(priority, nextval('redrive.job_seq'))
$$;

-- It takes the number's column, the second of the table: an update looks at every column that is in an index, and finds those soonest that lie
-- before all that may be null.
ALTER TABLE redrive.job DROP COLUMN line, ALTER seq DROP DEFAULT, ALTER seq TYPE bigint USING redrive.line_of(priority, seq);
ALTER TABLE redrive.job RENAME seq TO line;

-- For processes of the version before, which write a number and leave the place out: the end of those of the usual priority. Nobody else
-- writes or reads `seq`.
ALTER TABLE redrive.job ALTER line SET DEFAULT redrive.next_line(5::smallint), ADD COLUMN seq bigint;

CREATE INDEX job_claimable ON redrive.job (queue, name, line) WHERE in_line;
CREATE INDEX job_held_by ON redrive.job (held_by, in_line, line) WHERE held_by IS NOT NULL;
DROP INDEX redrive.job_due;
CREATE INDEX job_due ON redrive.job (run_at, line) WHERE NOT in_line;

CREATE OR REPLACE FUNCTION redrive.enqueue_list(
  at timestamptz, channel text, of_queue text, of_name text, of_service text, of_max_attempts smallint, of_priority smallint,
  ids uuid[], payloads json[]
) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment   timestamptz := coalesce(at, now());
  was_idle boolean := channel IS NOT NULL AND coalesce((
    SELECT j.state <> 'waiting' FROM redrive.job j WHERE j.queue = of_queue AND j.name = of_name AND j.in_line
    ORDER BY j.line DESC LIMIT 1), true);
BEGIN
  INSERT INTO redrive.job (id, state, queue, name, service, max_attempts, priority, payload, run_at, created_at, line)
  SELECT unnest(ids), 'waiting', of_queue, of_name, of_service, of_max_attempts, of_priority, unnest(payloads), moment, moment,
         redrive.next_line(of_priority);
  IF was_idle THEN PERFORM pg_notify(channel, of_queue); END IF;
END $$;

CREATE OR REPLACE FUNCTION redrive.enqueue(
  at timestamptz, channel text, of_queue text, of_name text, of_service text, of_max_attempts smallint,
  of_priority smallint, ids uuid[], payloads json, options json
) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment   timestamptz := coalesce(at, now());
  was_idle boolean := channel IS NOT NULL AND coalesce((
    SELECT j.state <> 'waiting' FROM redrive.job j WHERE j.queue = of_queue AND j.name = of_name AND j.in_line
    ORDER BY j.line DESC LIMIT 1), true);
  is_due   boolean := true;
BEGIN
  IF options IS NULL THEN
    INSERT INTO redrive.job (id, state, queue, name, service, max_attempts, priority, payload, run_at, created_at, line)
    SELECT t.id, 'waiting', of_queue, of_name, of_service, of_max_attempts, of_priority, t.payload, moment, moment,
           redrive.next_line(of_priority)
    FROM ROWS FROM (unnest(ids), json_array_elements(payloads)) AS t(id, payload);
  ELSE
    WITH input AS MATERIALIZED (
      SELECT t.*, greatest(coalesce(t.run_at, moment + t.delay_ms * interval '1 millisecond'), moment) AS due
      FROM ROWS FROM (
        unnest(ids), json_array_elements(payloads),
        json_to_recordset(options) AS (priority smallint, delay_ms double precision, run_at timestamptz, tenant text,
                                       user_id text, project text, trace text)
      ) AS t(id, payload, priority, delay_ms, run_at, tenant, user_id, project, trace)
    ), added AS (
      INSERT INTO redrive.job (id, in_line, state, queue, name, service, max_attempts, priority, payload, run_at,
                               created_at, tenant, user_id, project, trace, line)
      SELECT id, due <= moment, CASE WHEN due <= moment THEN 'waiting' ELSE 'scheduled' END::redrive.job_state, of_queue, of_name,
             of_service, of_max_attempts, priority, payload, due, moment, tenant, user_id, project, trace,
             redrive.next_line(priority)
      FROM input RETURNING in_line
    )
    SELECT bool_or(in_line) INTO is_due FROM added;
  END IF;
  IF was_idle AND is_due THEN PERFORM pg_notify(channel, of_queue); END IF;
END $$;

CREATE OR REPLACE FUNCTION redrive.enqueue_apart(
  at timestamptz, channel text, of_queue text, of_name text, of_service text, of_max_attempts smallint,
  of_priority smallint, ids uuid[], payloads json, options json
) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment   timestamptz := coalesce(at, now());
  was_idle boolean := channel IS NOT NULL AND coalesce((
    SELECT j.state <> 'waiting' FROM redrive.job j WHERE j.queue = of_queue AND j.name = of_name AND j.in_line
    ORDER BY j.line DESC LIMIT 1), true);
  is_due   boolean;
BEGIN
  WITH input AS MATERIALIZED (
    SELECT t.id, t.payload, t.tenant, t.user_id, t.project, t.trace, coalesce(t.priority, of_priority) AS priority,
           octet_length(t.payload::text) > 2000 AS is_large,
           greatest(coalesce(t.run_at, moment + t.delay_ms * interval '1 millisecond'), moment) AS due
    FROM ROWS FROM (
      unnest(ids), json_array_elements(payloads),
      json_to_recordset(coalesce(options, '[]')) AS (priority smallint, delay_ms double precision, run_at timestamptz,
                                                     tenant text, user_id text, project text, trace text)
    ) AS t(id, payload, priority, delay_ms, run_at, tenant, user_id, project, trace)
  ), apart AS (
    INSERT INTO redrive.payload (id, body) SELECT id, payload::text FROM input WHERE is_large
  ), added AS (
    INSERT INTO redrive.job (id, in_line, state, queue, name, service, max_attempts, priority, payload, run_at,
                             created_at, tenant, user_id, project, trace, line)
    SELECT id, due <= moment, CASE WHEN due <= moment THEN 'waiting' ELSE 'scheduled' END::redrive.job_state, of_queue, of_name,
           of_service, of_max_attempts, priority, CASE WHEN NOT is_large THEN payload END, due, moment, tenant, user_id, project,
           trace, redrive.next_line(priority)
    FROM input RETURNING in_line
  )
  SELECT bool_or(in_line) INTO is_due FROM added;
  IF was_idle AND is_due THEN PERFORM pg_notify(channel, of_queue); END IF;
END $$;

-- As before (0018_standby.sql), and it tells apart where others wait. Returns true if the job was handed over, false if it is in line with
-- nobody before it, null if it is in line behind others.
-- INVARIANT: as for a claim, a session that has ended or lapsed is given nothing, and of a paused queue nothing is given.
CREATE OR REPLACE FUNCTION redrive.enqueue_one(
  at timestamptz, to_all text, of_queue text, of_name text, of_service text, of_max_attempts smallint, of_priority smallint,
  of_id uuid, of_payload json, of_tenant text, of_user text, of_project text, of_trace text
) RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment   timestamptz := coalesce(at, now());
  was_idle boolean := coalesce((
    SELECT j.state <> 'waiting' FROM redrive.job j WHERE j.queue = of_queue AND j.name = of_name AND j.in_line
    ORDER BY j.line DESC LIMIT 1), true);
  start    double precision := random();
  taker    bigint;
  to_taker text;
  said     text;
BEGIN
  IF was_idle THEN
    SELECT b.session_id, b.channel INTO taker, to_taker FROM redrive.standby b
    WHERE b.queue = of_queue AND b.name = of_name AND b.spot >= start AND b.seen_at > moment - interval '5 seconds'
      AND EXISTS (SELECT FROM redrive.session s WHERE s.id = b.session_id AND s.ended_at IS NULL AND s.expires_at > moment)
      AND NOT EXISTS (SELECT FROM redrive.queue q WHERE q.name = of_queue AND q.paused_at IS NOT NULL)
    ORDER BY b.spot LIMIT 1;
  END IF;
  -- Whoever listens there has the lock (ledger/databases/pg-listener.ts). If we can have it, nobody does any more: it was killed.
  IF taker IS NOT NULL AND (
    pg_try_advisory_xact_lock_shared(hashtextextended(to_taker, 0))
    OR EXISTS (
      SELECT FROM (
        SELECT j.state FROM redrive.job j WHERE j.queue = of_queue AND j.name = of_name AND j.in_line ORDER BY j.line LIMIT 100
      ) first WHERE first.state = 'waiting')
  ) THEN taker := NULL; END IF;
  IF taker IS NULL THEN
    INSERT INTO redrive.job (id, state, queue, name, service, max_attempts, priority, payload, run_at, created_at, tenant, user_id,
                             project, trace, line)
    VALUES (of_id, 'waiting', of_queue, of_name, of_service, of_max_attempts, of_priority, of_payload, moment, moment, of_tenant,
            of_user, of_project, of_trace, redrive.next_line(of_priority));
    IF NOT was_idle THEN RETURN NULL; END IF;
    PERFORM pg_notify(to_all, of_queue);
    RETURN false;
  END IF;
  INSERT INTO redrive.job AS j (id, state, queue, name, service, max_attempts, priority, payload, run_at, created_at, tenant,
                                user_id, project, trace, attempt, lease, session_id, claimed_at, first_claimed_at, line)
  VALUES (of_id, 'active', of_queue, of_name, of_service, of_max_attempts, of_priority, of_payload, moment, moment, of_tenant,
          of_user, of_project, of_trace, 1, nextval('redrive.lease_seq'), taker, moment, moment, redrive.next_line(of_priority))
  RETURNING concat(taker, E'\x1e', redrive.packed(j.ctid, j)) INTO said;
  PERFORM pg_notify(to_taker, said);
  RETURN true;
END $$;
