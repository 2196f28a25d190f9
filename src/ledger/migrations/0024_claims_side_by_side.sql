-- Claims of several workers at once (docs/decisions/0034). Whoever claims meets the rows that others are claiming just then, and asked for the
-- lock of each, in vain: a sixth of what a claim took with four workers. A row that somebody is taking says so itself
-- (xmax), and is stepped over.
--
-- So does a row that somebody began to take and gave up, because his statement was cancelled or his connection broke. Whoever that was is no longer
-- among those that run: what is older than the oldest of these has ended, and the row is free. A transaction that runs for long makes all that came after it
-- look as if it ran as well; then such a row is found when the line is looked at from its start, without this condition (transports/postgres-line.ts).
-- INVARIANT: a session that has ended or lapsed claims nothing, and a paused queue gives nothing.
CREATE OR REPLACE FUNCTION redrive.bring(at timestamptz, of_session bigint, of_queue text, of_name text, most integer, after bigint)
RETURNS SETOF text LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan
SET work_mem = '64MB' AS $$
DECLARE
  moment timestamptz := coalesce(at, now());
  head   text := concat_ws(E'\x1f', redrive.millis(moment), of_queue, of_name);
  oldest integer := age(pg_snapshot_xmin(pg_current_snapshot())::xid);
BEGIN
  RETURN QUERY
  WITH taken AS (
    -- Rows are taken by their place, which their locks keep still: no join, so no plan that depends on statistics.
    UPDATE redrive.job j
    SET state = 'active', attempt = j.attempt + 1, lease = nextval('redrive.lease_seq'), session_id = of_session,
        claimed_at = moment, started = false, first_claimed_at = coalesce(j.first_claimed_at, moment)
    WHERE j.state = 'waiting' AND j.ctid = ANY (ARRAY(
      SELECT j.ctid FROM redrive.job j
      WHERE j.queue = of_queue AND j.name = of_name AND j.in_line AND j.line > coalesce(after, 0) AND j.state = 'waiting'
        AND (after IS NULL OR j.xmax = '0' OR age(j.xmax) > oldest)
        AND EXISTS (SELECT FROM redrive.session s WHERE s.id = of_session AND s.ended_at IS NULL AND s.expires_at > moment)
        AND NOT EXISTS (SELECT FROM redrive.queue q WHERE q.name = of_queue AND q.paused_at IS NOT NULL)
      ORDER BY j.line LIMIT most FOR UPDATE SKIP LOCKED))
    RETURNING redrive.parcel_of(j.lease, j.payload) AS parcel, redrive.told(j.ctid, j) AS job,
      CASE WHEN j.payload IS NULL THEN j.id END AS apart
  )
  SELECT concat(head, E'\x1e', string_agg(
    CASE WHEN apart IS NULL THEN job ELSE concat(job, (SELECT p.body FROM redrive.payload p WHERE p.id = apart)) END, E'\x1e'))
  FROM taken GROUP BY parcel;
END $$;
