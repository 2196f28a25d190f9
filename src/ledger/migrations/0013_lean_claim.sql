-- Claims that bring their jobs as text (docs/decisions/0021). The functions before these returned a row of columns for each
-- job, with a JSON text among them as soon as it had a limit of attempts, a tenant or the like: making and reading that cost
-- more than claiming did. They stay for workers of the version before.

-- What a claim says of a job and its place, with chr(31) between the fields, in the order that src/ledger/claim.ts reads
-- them. What comes from outside and may hold any character is JSON, which has no control characters. `past`: how far it
-- has come, if this is not its first attempt.
CREATE FUNCTION redrive.packed(place tid, j redrive.job) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT concat(
    place, E'\x1f', j.id, E'\x1f', j.lease, E'\x1f', j.line, E'\x1f', j.queue, E'\x1f', j.name, E'\x1f', j.priority, E'\x1f', j.attempt, E'\x1f',
    redrive.millis(j.created_at), E'\x1f', redrive.millis(j.claimed_at), E'\x1f',
    CASE WHEN j.run_at <> j.created_at THEN redrive.millis(j.run_at) END, E'\x1f', j.max_attempts, E'\x1f', j.service, E'\x1f',
    to_json(j.unique_key), E'\x1f', to_json(j.tenant), E'\x1f', to_json(j.user_id), E'\x1f', to_json(j.project), E'\x1f',
    to_json(j.trace), E'\x1f', to_json(j.held_by), E'\x1f',
    CASE WHEN j.first_claimed_at <> j.claimed_at OR j.snoozes + j.holds + j.interruptions + j.lost + j.redrives > 0
      THEN concat_ws(',', redrive.millis(j.first_claimed_at), j.snoozes, j.holds, j.interruptions, j.lost, j.redrives) END,
    E'\x1f', j.payload)
$$;

-- Which jobs come in one text, with chr(30) between them: fifty small ones. A text is kept for as long as any job of it is
-- worked on, so a large one comes alone.
CREATE FUNCTION redrive.parcel(lease bigint, payload json) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN octet_length(payload::text) > 1000 THEN -lease ELSE lease / 50 END
$$;

-- Takes up to `most` jobs of one lane for a session, each with a new lease. `after`: where in line to begin looking,
-- if not at the start.
-- INVARIANT: a session that has ended or lapsed claims nothing, and a paused queue gives nothing.
CREATE FUNCTION redrive.take(at timestamptz, of_session bigint, of_queue text, of_name text, most integer, after bigint)
RETURNS SETOF text LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan
SET work_mem = '64MB' AS $$
DECLARE
  moment timestamptz := coalesce(at, now());
BEGIN
  RETURN QUERY
  WITH next AS MATERIALIZED (
    SELECT j.ctid AS place FROM redrive.job j
    WHERE j.queue = of_queue AND j.name = of_name AND j.in_line AND j.line > coalesce(after, 0) AND j.state = 'waiting'
      AND EXISTS (SELECT FROM redrive.session s WHERE s.id = of_session AND s.ended_at IS NULL AND s.expires_at > moment)
      AND NOT EXISTS (SELECT FROM redrive.queue q WHERE q.name = of_queue AND q.paused_at IS NOT NULL)
    ORDER BY j.line LIMIT most FOR UPDATE SKIP LOCKED
  ), taken AS (
    -- Rows are taken by their place, which their locks keep still: no join, so no plan that depends on statistics.
    UPDATE redrive.job j
    SET state = 'active', attempt = j.attempt + 1, lease = nextval('redrive.lease_seq'), session_id = of_session,
        claimed_at = moment, started = false, first_claimed_at = coalesce(j.first_claimed_at, moment)
    WHERE j.ctid = ANY (ARRAY(SELECT place FROM next)) AND j.state = 'waiting'
    RETURNING redrive.parcel(j.lease, j.payload) AS parcel, redrive.packed(j.ctid, j) AS job
  )
  SELECT string_agg(job, E'\x1e') FROM taken GROUP BY parcel;
END $$;

-- The same for several lanes, which are one line: first see, without locking, how many of each lane are at the front of
-- the whole; then lock that many of each. `lanes`: [{ queue, name, limit, after }].
CREATE FUNCTION redrive.take_lanes(at timestamptz, of_session bigint, lanes json, most integer)
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
    RETURNING redrive.parcel(j.lease, j.payload) AS parcel, redrive.packed(j.ctid, j) AS job
  )
  SELECT string_agg(job, E'\x1e') FROM taken GROUP BY parcel;
END $$;
