-- Many jobs of one lane, with the payloads as a list of Postgres' own (ledger/binary-list.ts) instead of one JSON text: each is
-- read once, where the text is read as a whole first and then taken apart. Otherwise as redrive.enqueue, which stays for
-- those who can only carry text.
CREATE FUNCTION redrive.enqueue_list(
  at timestamptz, channel text, of_queue text, of_name text, of_service text, of_max_attempts smallint, of_priority smallint,
  ids uuid[], payloads json[], options json
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
    INSERT INTO redrive.job (id, state, queue, name, service, max_attempts, priority, payload, run_at, created_at)
    SELECT unnest(ids), 'waiting', of_queue, of_name, of_service, of_max_attempts, of_priority, unnest(payloads), moment, moment;
  ELSE
    WITH input AS MATERIALIZED (
      SELECT t.*, greatest(coalesce(t.run_at, moment + t.delay_ms * interval '1 millisecond'), moment) AS due
      FROM ROWS FROM (
        unnest(ids), unnest(payloads),
        json_to_recordset(options) AS (priority smallint, delay_ms double precision, run_at timestamptz, tenant text,
                                       user_id text, project text, trace text)
      ) AS t(id, payload, priority, delay_ms, run_at, tenant, user_id, project, trace)
    ), added AS (
      INSERT INTO redrive.job (id, in_line, state, queue, name, service, max_attempts, priority, payload, run_at,
                               created_at, tenant, user_id, project, trace)
      SELECT id, due <= moment, CASE WHEN due <= moment THEN 'waiting' ELSE 'scheduled' END::redrive.job_state, of_queue,
             of_name, of_service, of_max_attempts, priority, payload, due, moment, tenant, user_id, project, trace
      FROM input RETURNING in_line
    )
    SELECT bool_or(in_line) INTO is_due FROM added;
  END IF;
  IF was_idle AND is_due THEN PERFORM pg_notify(channel, of_queue); END IF;
END $$;
