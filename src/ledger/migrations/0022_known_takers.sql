-- Who stands by for jobs of a lane, for a process that hands over one job after the other and need not ask for each who that is
-- (docs/decisions/0033). Nobody, where others wait in line: a job is handed over to nobody past them.
CREATE FUNCTION redrive.takers(at timestamptz, of_queue text, of_name text, most integer)
RETURNS TABLE (session_id bigint, channel text) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment timestamptz := coalesce(at, now());
  start  double precision := random();
BEGIN
  IF EXISTS (
    SELECT FROM (
      SELECT j.state FROM redrive.job j WHERE j.queue = of_queue AND j.name = of_name AND j.in_line ORDER BY j.line LIMIT 100
    ) first WHERE first.state = 'waiting'
  ) OR (
    SELECT j.state = 'waiting' FROM redrive.job j WHERE j.queue = of_queue AND j.name = of_name AND j.in_line
    ORDER BY j.line DESC LIMIT 1
  ) THEN RETURN; END IF;
  -- One turn from anywhere: each of them once, and if there are more, others each time.
  RETURN QUERY
  SELECT b.session_id, b.channel FROM redrive.standby b
  WHERE b.queue = of_queue AND b.name = of_name AND b.spot >= start AND b.spot < start + 1
    AND b.seen_at > moment - interval '5 seconds'
  ORDER BY b.spot LIMIT most;
END $$;
