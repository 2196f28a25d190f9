-- Claims that say what jobs have as columns (docs/decisions/0021). The functions before these put it into a JSON text as soon
-- as a job had any of it, which cost more than claiming did; they stay for workers of the version before.

-- How far a job has come, if this is not its first attempt: "first claimed, snoozes, holds, interruptions, lost, redrives,
-- held by", the last with whatever is in it.
CREATE FUNCTION redrive.past_of(j redrive.job) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN j.first_claimed_at <> j.claimed_at OR j.held_by IS NOT NULL
                OR j.snoozes + j.holds + j.interruptions + j.lost + j.redrives > 0
    THEN concat(redrive.millis(j.first_claimed_at), ',', j.snoozes, ',', j.holds, ',', j.interruptions, ',', j.lost, ',',
                j.redrives, ',', j.held_by) END
$$;

-- A claimed job as a worker needs it. `place`: where its row lies until it is settled, unless something is noted on it.
-- `queue` and `name` are null if only one lane was asked for; `run_at` if it is as it was created.
CREATE TYPE redrive.taken_job AS (
  place tid, id uuid, lease bigint, line bigint, queue text, name text, payload text, attempt integer, priority smallint,
  created_at bigint, claimed_at bigint, run_at bigint, max_attempts smallint, service text, unique_key text, tenant text,
  user_id text, project text, trace text, past text
);

-- Takes up to `most` jobs of one lane for a session, each with a new lease. `after`: where in line to begin looking,
-- if not at the start.
-- INVARIANT: a session that has ended or lapsed claims nothing, and a paused queue gives nothing.
CREATE FUNCTION redrive.take(at timestamptz, of_session bigint, of_queue text, of_name text, most integer, after bigint)
RETURNS SETOF redrive.taken_job LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
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
  )
  -- Rows are taken by their place, which their locks keep still: no join, so no plan that depends on statistics.
  UPDATE redrive.job j
  SET state = 'active', attempt = j.attempt + 1, lease = nextval('redrive.lease_seq'), session_id = of_session,
      claimed_at = moment, started = false, first_claimed_at = coalesce(j.first_claimed_at, moment)
  WHERE j.ctid = ANY (ARRAY(SELECT place FROM next)) AND j.state = 'waiting'
  RETURNING j.ctid, j.id, j.lease, j.line, NULL::text, NULL::text, j.payload::text, j.attempt, j.priority,
    redrive.millis(j.created_at), redrive.millis(j.claimed_at),
    CASE WHEN j.run_at <> j.created_at THEN redrive.millis(j.run_at) END, j.max_attempts, j.service, j.unique_key::text,
    j.tenant, j.user_id, j.project, j.trace, redrive.past_of(j);
END $$;

-- The same for several lanes, which are one line: first see, without locking, how many of each lane are at the front of
-- the whole; then lock that many of each. `lanes`: [{ queue, name, limit, after }].
CREATE FUNCTION redrive.take_lanes(at timestamptz, of_session bigint, lanes json, most integer)
RETURNS SETOF redrive.taken_job LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
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
    SELECT taken.place FROM front CROSS JOIN LATERAL (
      SELECT j.ctid AS place FROM redrive.job j
      WHERE j.queue = front.queue AND j.name = front.name AND j.in_line AND j.line > coalesce(front.after, 0) AND j.state = 'waiting'
      ORDER BY j.line LIMIT front.share FOR UPDATE SKIP LOCKED
    ) taken
  )
  UPDATE redrive.job j
  SET state = 'active', attempt = j.attempt + 1, lease = nextval('redrive.lease_seq'), session_id = of_session,
      claimed_at = moment, started = false, first_claimed_at = coalesce(j.first_claimed_at, moment)
  WHERE j.ctid = ANY (ARRAY(SELECT place FROM next)) AND j.state = 'waiting'
  RETURNING j.ctid, j.id, j.lease, j.line, j.queue::text, j.name::text, j.payload::text, j.attempt, j.priority,
    redrive.millis(j.created_at), redrive.millis(j.claimed_at),
    CASE WHEN j.run_at <> j.created_at THEN redrive.millis(j.run_at) END, j.max_attempts, j.service, j.unique_key::text,
    j.tenant, j.user_id, j.project, j.trace, redrive.past_of(j);
END $$;
