-- Sends dead letters without a unique key back to run, each to its place in line, as a function like those of the other hot statements
-- (0002_hot_path.sql): planned once a connection instead of once for every thousand letters, and by the letters' ids whatever the statistics
-- say. Letters and places come as two lists of the same order, so nothing is numbered or sorted again (docs/decisions/0035).
-- Returns for each queue how many went, and which.
-- INVARIANT: a letter stays, as `redriving`, until its job has ended (pitfall 4); one that is not open any more stays as it is.
CREATE FUNCTION redrive.send_back(at timestamptz, ids uuid[], places bigint[])
RETURNS TABLE (went_to text, went bigint, gone uuid[]) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment timestamptz := coalesce(at, now());
BEGIN
  RETURN QUERY
  WITH marked AS (
    UPDATE redrive.dead_letter d
    SET status = 'redriving', recovery_attempts = d.recovery_attempts + 1, redriven_at = moment, updated_at = moment, resolved_at = NULL,
        resolution = NULL
    FROM unnest(ids, places) AS asked(id, place)
    -- As a value, not as a condition: nobody is to look for them by their status.
    WHERE d.id = asked.id
      AND (d.status IN ('pending', 'permanently_failed') AND d.redrives = d.recovery_attempts AND d.unique_key IS NULL) IS TRUE
    RETURNING asked.place, d.id, d.queue, d.name, d.job_priority, d.payload, d.job_created_at, d.max_attempts, d.redrives, d.service,
      d.tenant, d.user_id, d.project
  ), revived AS (
    INSERT INTO redrive.job (id, line, state, queue, name, priority, payload, run_at, created_at, max_attempts, redrives, service, tenant,
                             user_id, project)
    SELECT id, redrive.line_of(job_priority, place), 'waiting', queue, name, job_priority, payload, moment, job_created_at, max_attempts,
           redrives + 1, service, tenant, user_id, project
    FROM marked
  )
  SELECT queue, count(*), array_agg(id) FROM marked GROUP BY queue;
END $$;

-- No two letters have the same key in these, so there is nothing to look for among equal ones when a page is full.
ALTER INDEX redrive.dead_letter_by_status SET (deduplicate_items = off);
ALTER INDEX redrive.dead_letter_by_queue SET (deduplicate_items = off);
ALTER INDEX redrive.dead_letter_by_name SET (deduplicate_items = off);
ALTER INDEX redrive.dead_letter_by_fingerprint SET (deduplicate_items = off);
ALTER INDEX redrive.dead_letter_by_service SET (deduplicate_items = off);
ALTER INDEX redrive.dead_letter_by_assigned_to SET (deduplicate_items = off);
