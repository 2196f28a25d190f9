-- Successes, asked for less (docs/decisions/0030). redrive.complete joins the claims it is given with the jobs at their places, by lease and by
-- id, and carries each job's result along. A lease is given once and so names its claim: it is enough to find it among those given,
-- and ids are wanted only for what is not at its place any more. That was a fifth of what a success costs.

-- Like redrive.complete. `ids`: as the text of a list, which is read only if it is needed.
-- INVARIANT: a row is touched only if it still carries the lease of this very claim.
CREATE FUNCTION redrive.finish(at timestamptz, of_shard bigint, places tid[], leases bigint[], ids text, results json)
RETURNS SETOF bigint LANGUAGE plpgsql
SET enable_seqscan = off SET enable_indexscan = off SET enable_bitmapscan = off SET enable_nestloop = off
SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment   timestamptz := coalesce(at, now());
  done     bigint[];
  redriven uuid[];
BEGIN
  IF results IS NOT NULL THEN
    RETURN QUERY SELECT redrive.complete(at, of_shard, places, leases, ids::uuid[], results);
    RETURN;
  END IF;
  WITH moved AS (
    DELETE FROM redrive.job j
    -- As a value, not as a condition: looked up in a hash table, whatever the planner thinks of it.
    WHERE j.ctid = ANY (places) AND (j.lease IN (SELECT unnest(leases))) IS TRUE AND j.state = 'active'
    RETURNING j.id, j.lease, j.created_at, j.first_claimed_at, j.claimed_at, j.session_id, j.attempt, j.snoozes, j.holds,
      j.interruptions, j.lost, j.redrives, j.max_attempts, j.priority, j.queue, j.name, j.payload, j.unique_key, j.service,
      j.tenant, j.user_id, j.project
  ), kept AS (
    INSERT INTO redrive.finished_job (
      id, created_at, first_claimed_at, claimed_at, session_id, attempt, snoozes, holds, interruptions, lost, redrives,
      max_attempts, priority, queue, name, payload, unique_key, service, tenant, user_id, project, state, finished_at)
    SELECT id, created_at, first_claimed_at, claimed_at, session_id, attempt, snoozes, holds, interruptions, lost,
      redrives, max_attempts, priority, queue, name, payload, unique_key, service, tenant, user_id, project, 'completed', moment
    FROM moved
  ), counted AS (
    INSERT INTO redrive.tally (queue, day, shard, completed)
    SELECT queue, (moment AT TIME ZONE 'UTC')::date, of_shard, count(*) FROM moved GROUP BY queue
    ON CONFLICT (queue, day, shard) DO UPDATE SET completed = tally.completed + excluded.completed
  )
  SELECT coalesce(array_agg(lease), '{}'), array_agg(id) FILTER (WHERE redrives > 0) INTO done, redriven FROM moved;
  IF redriven IS NOT NULL THEN PERFORM redrive.recovered(moment, redriven); END IF;
  IF cardinality(done) < cardinality(leases) THEN
    -- Some are not where they were at their claim: something was noted on them, or they are not ours any more.
    RETURN QUERY SELECT redrive.complete(at, of_shard, places, array_agg(e.lease), array_agg(e.id), NULL)
      FROM ROWS FROM (unnest(leases), unnest(ids::uuid[])) AS e(lease, id) WHERE e.lease <> ALL (done);
  END IF;
END $$;
