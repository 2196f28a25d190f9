-- Many jobs of one lane that are alike, with the payloads as a list of Postgres' own (ledger/binary-list.ts) instead of one JSON
-- text: each is read once, where the text is read as a whole first and then taken apart.
CREATE FUNCTION redrive.enqueue_list(
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
  INSERT INTO redrive.job (id, state, queue, name, service, max_attempts, priority, payload, run_at, created_at)
  SELECT unnest(ids), 'waiting', of_queue, of_name, of_service, of_max_attempts, of_priority, unnest(payloads), moment, moment;
  IF was_idle THEN PERFORM pg_notify(channel, of_queue); END IF;
END $$;
