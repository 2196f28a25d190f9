-- Claims that bring no large payload (docs/decisions/0038). A payload that lies apart (0017_payloads_apart.sql) came with its claim, put into the
-- text of its job and copied at each step; nobody could begin before the last one was there, and the server rested while they ran.
-- It is read by its worker now, when a handler is about to get to it. The functions before these stay for workers of the version before.

-- Like redrive.told, but with nothing for a payload that lies apart: no payload is empty.
CREATE FUNCTION redrive.drawn(place tid, j redrive.job) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE
    WHEN j.attempt = 1 AND j.priority = 5 AND j.run_at = j.created_at
      AND coalesce(j.unique_key, j.tenant, j.user_id, j.project, j.trace, j.held_by) IS NULL
      AND j.first_claimed_at = j.claimed_at AND j.snoozes + j.holds + j.interruptions + j.lost + j.redrives = 0
    THEN concat_ws(E'\x1f', place, j.id, j.lease, j.line, redrive.millis(j.created_at), coalesce(j.max_attempts::text, ''),
                   coalesce(j.service, ''), coalesce(j.payload::text, ''))
    ELSE redrive.packed(place, j)
  END
$$;

-- Like redrive.parcel_of: what brings no payload is small.
CREATE FUNCTION redrive.drawn_with(lease bigint, payload json) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN pg_column_size(payload) > 1000 THEN -lease ELSE lease / 50 END
$$;

-- Like redrive.bring (0024_claims_side_by_side.sql).
-- INVARIANT: a session that has ended or lapsed claims nothing, and a paused queue gives nothing.
CREATE FUNCTION redrive.draw(at timestamptz, of_session bigint, of_queue text, of_name text, most integer, after bigint)
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
    RETURNING redrive.drawn_with(j.lease, j.payload) AS parcel, redrive.drawn(j.ctid, j) AS job
  )
  SELECT concat(head, E'\x1e', string_agg(job, E'\x1e')) FROM taken GROUP BY parcel;
END $$;

-- Like redrive.bring_lanes (0019_plain_claim.sql).
CREATE FUNCTION redrive.draw_lanes(at timestamptz, of_session bigint, lanes json, most integer)
RETURNS SETOF text LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan
SET work_mem = '64MB' AS $$
DECLARE
  moment timestamptz := coalesce(at, now());
BEGIN
  RETURN QUERY
  WITH lane AS MATERIALIZED (
    SELECT l.* FROM json_to_recordset(lanes)
      AS l(queue text COLLATE "C", name text COLLATE "C", "limit" integer, after bigint)
    WHERE EXISTS (SELECT FROM redrive.session s WHERE s.id = of_session AND s.ended_at IS NULL AND s.expires_at > moment)
      AND NOT EXISTS (SELECT FROM redrive.queue q WHERE q.name = l.queue AND q.paused_at IS NOT NULL)
  ), front AS MATERIALIZED (
    SELECT queue, name, after, count(*) AS share
    FROM (
      SELECT lane.queue, lane.name, lane.after
      FROM lane CROSS JOIN LATERAL (
        SELECT j.line FROM redrive.job j
        WHERE j.queue = lane.queue AND j.name = lane.name AND j.in_line AND j.line > coalesce(lane.after, 0) AND j.state = 'waiting'
        ORDER BY j.line LIMIT lane.limit
      ) ahead
      ORDER BY ahead.line LIMIT most
    ) line
    GROUP BY queue, name, after
  ), next AS MATERIALIZED (
    SELECT chosen.place FROM front CROSS JOIN LATERAL (
      SELECT j.ctid AS place FROM redrive.job j
      WHERE j.queue = front.queue AND j.name = front.name AND j.in_line AND j.line > coalesce(front.after, 0) AND j.state = 'waiting'
      ORDER BY j.line LIMIT front.share FOR UPDATE SKIP LOCKED
    ) chosen
  ), taken AS (
    UPDATE redrive.job j
    SET state = 'active', attempt = j.attempt + 1, lease = nextval('redrive.lease_seq'), session_id = of_session,
        claimed_at = moment, started = false, first_claimed_at = coalesce(j.first_claimed_at, moment)
    WHERE j.ctid = ANY (ARRAY(SELECT place FROM next)) AND j.state = 'waiting'
    RETURNING j.queue, j.name, redrive.drawn_with(j.lease, j.payload) AS parcel, redrive.drawn(j.ctid, j) AS job
  )
  SELECT concat(concat_ws(E'\x1f', redrive.millis(moment), queue, name), E'\x1e', string_agg(job, E'\x1e'))
  FROM taken GROUP BY queue, name, parcel;
END $$;
