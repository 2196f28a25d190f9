-- Duties: what one process at a time does for the whole fleet, as long as it shows up for it. One row for each.
CREATE TABLE redrive.duty (
  name   text COLLATE "C" PRIMARY KEY,
  holder text NOT NULL,
  until  timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Where a job was enqueued from, as W3C trace context has it; only if a span was active then. A column that is null takes
-- no room, and is read only with the other things that most jobs do not have.
ALTER TABLE redrive.job ADD COLUMN trace text;

CREATE OR REPLACE FUNCTION redrive.enqueue(
  at timestamptz, channel text, of_queue text, of_name text, of_service text, of_max_attempts smallint,
  of_priority smallint, ids uuid[], payloads json, options json
) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment   timestamptz := coalesce(at, now());
  was_idle boolean := channel IS NOT NULL AND coalesce((
    SELECT j.state <> 'waiting' FROM redrive.job j WHERE j.queue = of_queue AND j.name = of_name AND j.in_line
    ORDER BY j.line DESC LIMIT 1), true);
  is_due   boolean := true;
BEGIN
  IF options IS NULL THEN
    INSERT INTO redrive.job (id, state, queue, name, service, max_attempts, priority, payload, run_at,
                             created_at)
    SELECT t.id, 'waiting', of_queue, of_name, of_service, of_max_attempts,
           of_priority, t.payload, moment, moment
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
                               created_at, tenant, user_id, project, trace)
      SELECT id, due <= moment, CASE WHEN due <= moment THEN 'waiting' ELSE 'scheduled' END::redrive.job_state, of_queue, of_name,
             of_service, of_max_attempts, priority, payload, due, moment, tenant, user_id, project, trace
      FROM input RETURNING in_line
    )
    SELECT bool_or(in_line) INTO is_due FROM added;
  END IF;
  IF was_idle AND is_due THEN PERFORM pg_notify(channel, of_queue); END IF;
END $$;

CREATE OR REPLACE FUNCTION redrive.more_of(j redrive.job) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN j.first_claimed_at <> j.claimed_at OR j.max_attempts IS NOT NULL
                OR j.snoozes + j.holds + j.interruptions + j.lost + j.redrives > 0
                OR coalesce(j.unique_key, j.tenant, j.user_id, j.project, j.trace) IS NOT NULL
    THEN json_build_object(
      'firstClaimedAt', date_part('epoch', j.first_claimed_at) * 1000, 'maxAttempts', j.max_attempts,
      'snoozes', j.snoozes, 'holds', j.holds, 'interruptions', j.interruptions, 'lost', j.lost, 'redrives', j.redrives,
      'uniqueKey', j.unique_key, 'tenant', j.tenant, 'user', j.user_id, 'project', j.project, 'heldBy', j.held_by,
      'trace', j.trace)::text END
$$;
