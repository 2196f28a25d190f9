-- Makes due jobs claimable, as a function like those of the other hot statements (0002_hot_path.sql): planned once a connection, and by
-- the index whatever the statistics say. Planned each time, it took 1.7 ms for fifty jobs, most of it planning (docs/decisions/0033).
-- Returns for each queue how many are in line now, and then, without a queue, in how long the next one is due.

-- Places in line are given in the order in which they are due; who is held for a rate limit has a place already, and was not let go when
-- expected. The rows are taken by where they lie; asked again for `NOT in_line`, the planner might go through that whole index instead.
CREATE FUNCTION redrive.promote(at timestamptz, most integer, channel text)
RETURNS TABLE (promoted_in text, jobs bigint, next_due_in double precision) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment timestamptz := coalesce(at, now());
  places tid[] := ARRAY(
    SELECT j.ctid FROM redrive.job j WHERE NOT j.in_line AND j.run_at <= moment ORDER BY j.run_at, j.line LIMIT most
    FOR UPDATE SKIP LOCKED);
BEGIN
  IF cardinality(places) > 0 THEN
    FOR promoted_in, jobs IN
      WITH numbered AS MATERIALIZED (
        SELECT due.place, nextval('redrive.job_seq') AS number FROM unnest(places) AS due(place)
      ), promoted AS (
        UPDATE redrive.job j
        SET state = 'waiting', in_line = true, held_by = NULL,
            line = CASE WHEN j.held_by IS NULL THEN redrive.line_of(j.priority, numbered.number) ELSE j.line END
        FROM numbered WHERE j.ctid = numbered.place AND j.state IN ('scheduled', 'retrying', 'held')
        RETURNING j.queue
      )
      SELECT p.queue, count(*) FROM promoted p GROUP BY p.queue
    LOOP
      IF channel IS NOT NULL THEN PERFORM pg_notify(channel, promoted_in); END IF;
      RETURN NEXT;
    END LOOP;
  END IF;
  RETURN QUERY
  SELECT NULL::text, 0::bigint, date_part('epoch', j.run_at) * 1000 - date_part('epoch', moment) * 1000 FROM redrive.job j
  WHERE NOT j.in_line AND j.run_at > moment ORDER BY j.run_at LIMIT 1;
END $$;
