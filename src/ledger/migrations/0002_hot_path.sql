-- What every job passes through, as functions: planned once a connection instead of at each call, because planning a
-- statement costs more than moving a hundred jobs with it. The plans must suit an empty table and one of a million rows
-- alike, so what depends on statistics is switched off for them (docs/decisions/0009).
--
-- A function that was released is never changed: one that does something else gets another name, because processes of
-- two versions share a database during a deployment.

-- Jobs of one lane. `options`: what differs between them, in their order; null if nothing does and all are due now.
-- Workers are woken only if nothing was waiting in the lane (pitfall 10). Its last job tells: one look, however many run.
CREATE FUNCTION redrive.enqueue(
  at timestamptz, channel text, of_queue text, of_name text, of_service text, of_max_attempts smallint,
  of_priority smallint, ids uuid[], payloads json, options json
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
    INSERT INTO redrive.job (id, state, queue, name, service, max_attempts, priority, payload, run_at,
                             created_at)
    SELECT t.id, 'waiting', of_queue, of_name, of_service, of_max_attempts,
           of_priority, t.payload, moment, moment
    FROM ROWS FROM (unnest(ids), json_array_elements(payloads)) AS t(id, payload);
  ELSE
    WITH input AS MATERIALIZED (
      SELECT t.*, greatest(coalesce(t.run_at, moment + t.delay_ms * interval '1 millisecond'), moment) AS due
      FROM ROWS FROM (
        unnest(ids), json_array_elements(payloads),
        json_to_recordset(options) AS (priority smallint, delay_ms double precision, run_at timestamptz, tenant text,
                                       user_id text, project text)
      ) AS t(id, payload, priority, delay_ms, run_at, tenant, user_id, project)
    ), added AS (
      INSERT INTO redrive.job (id, in_line, state, queue, name, service, max_attempts, priority, payload, run_at,
                               created_at, tenant, user_id, project)
      SELECT id, due <= moment, CASE WHEN due <= moment THEN 'waiting' ELSE 'scheduled' END::redrive.job_state, of_queue, of_name,
             of_service, of_max_attempts, priority, payload, due, moment, tenant, user_id, project
      FROM input RETURNING in_line
    )
    SELECT bool_or(in_line) INTO is_due FROM added;
  END IF;
  IF was_idle AND is_due THEN PERFORM pg_notify(channel, of_queue); END IF;
END $$;

-- What most claimed jobs do not have: null for those.
CREATE FUNCTION redrive.more_of(j redrive.job) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN j.first_claimed_at <> j.claimed_at OR j.max_attempts IS NOT NULL
                OR j.snoozes + j.holds + j.interruptions + j.lost + j.redrives > 0
                OR coalesce(j.unique_key, j.tenant, j.user_id, j.project) IS NOT NULL
    THEN json_build_object(
      'firstClaimedAt', date_part('epoch', j.first_claimed_at) * 1000, 'maxAttempts', j.max_attempts,
      'snoozes', j.snoozes, 'holds', j.holds, 'interruptions', j.interruptions, 'lost', j.lost, 'redrives', j.redrives,
      'uniqueKey', j.unique_key, 'tenant', j.tenant, 'user', j.user_id, 'project', j.project, 'heldBy', j.held_by)::text END
$$;

CREATE FUNCTION redrive.millis(moment timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT (date_part('epoch', moment) * 1000)::bigint
$$;

-- A claimed job as a worker needs it. `place`: where its row lies until it is settled, unless something is noted on it.
CREATE TYPE redrive.claimed_job AS (
  place tid, id uuid, lease bigint, line bigint, queue text, name text, payload text, attempt integer, priority smallint,
  service text, created_at bigint, claimed_at bigint, run_at bigint, more text
);

-- Takes up to `most` jobs of one lane for a session, each with a new lease. `after`: where in line to begin looking,
-- if not at the start.
-- INVARIANT: a session that has ended or lapsed claims nothing, and a paused queue gives nothing.
CREATE FUNCTION redrive.claim(at timestamptz, of_session bigint, of_queue text, of_name text, most integer, after bigint)
RETURNS SETOF redrive.claimed_job LANGUAGE plpgsql
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
  RETURNING j.ctid, j.id, j.lease, j.line, NULL::text, NULL::text, j.payload::text, j.attempt, j.priority, j.service,
    redrive.millis(j.created_at), redrive.millis(j.claimed_at),
    CASE WHEN j.run_at <> j.created_at THEN redrive.millis(j.run_at) END, redrive.more_of(j);
END $$;

-- The same for several lanes, which are one line: first see, without locking, how many of each lane are at the front of
-- the whole; then lock that many of each. `lanes`: [{ queue, name, limit, after }].
CREATE FUNCTION redrive.claim_lanes(at timestamptz, of_session bigint, lanes json, most integer)
RETURNS SETOF redrive.claimed_job LANGUAGE plpgsql
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
  RETURNING j.ctid, j.id, j.lease, j.line, j.queue::text, j.name::text, j.payload::text, j.attempt, j.priority, j.service,
    redrive.millis(j.created_at), redrive.millis(j.claimed_at),
    CASE WHEN j.run_at <> j.created_at THEN redrive.millis(j.run_at) END, redrive.more_of(j);
END $$;

-- Where claimed jobs lie now, of those that are still as they were claimed.
CREATE FUNCTION redrive.find_claimed(
  INOUT leases bigint[], INOUT ids uuid[], INOUT results json, OUT places tid[]
) LANGUAGE sql STABLE
SET enable_indexscan = on SET enable_nestloop = on SET enable_hashjoin = off SET jit = off AS $$
  SELECT array_agg(j.lease), array_agg(j.id), json_agg(e.result), array_agg(j.ctid)
  FROM ROWS FROM (unnest(leases), unnest(ids), json_array_elements(results)) AS e(lease, id, result)
  JOIN redrive.job j ON j.id = e.id AND j.lease = e.lease AND j.state = 'active'
$$;

-- The jobs of these dead letters completed.
CREATE FUNCTION redrive.recovered(moment timestamptz, ids uuid[]) RETURNS void LANGUAGE sql
SET enable_indexscan = on SET enable_nestloop = on AS $$
  UPDATE redrive.dead_letter
  SET status = 'recovered', resolved_at = moment, updated_at = moment, resolution = 'its job completed'
  WHERE id = ANY (ids)
$$;

-- Success: jobs leave the live table for the history, and a dead letter that one came back from is recovered. Returns
-- the leases that were refused. INVARIANT: a row is touched only if it still carries the lease of this very claim.
CREATE FUNCTION redrive.complete(
  at timestamptz, of_shard bigint, places tid[], leases bigint[], ids uuid[], results json
) RETURNS SETOF bigint LANGUAGE plpgsql
SET enable_seqscan = off SET enable_indexscan = off SET enable_bitmapscan = off SET enable_nestloop = off
SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment   timestamptz := coalesce(at, now());
  asked    bigint[] := leases;
  settled  bigint[] := '{}';
  done     bigint[];
  redriven uuid[];
BEGIN
  FOR look IN 1..2 LOOP
    WITH ended AS MATERIALIZED (
      SELECT * FROM ROWS FROM (unnest(leases), unnest(ids), json_array_elements(results)) AS e(lease, id, result)
    ), moved AS (
      DELETE FROM redrive.job j USING ended e
      WHERE j.ctid = ANY (places) AND j.lease = e.lease AND j.id = e.id AND j.state = 'active'
      RETURNING j.*, CASE WHEN e.result::text <> 'null' THEN e.result END AS result
    ), kept AS (
      INSERT INTO redrive.finished_job (
        id, created_at, first_claimed_at, claimed_at, session_id, attempt, snoozes, holds, interruptions, lost, redrives,
        max_attempts, priority, queue, name, payload, unique_key, service, tenant, user_id, project, state, finished_at,
        result)
      SELECT id, created_at, first_claimed_at, claimed_at, session_id, attempt, snoozes, holds, interruptions, lost,
        redrives, max_attempts, priority, queue, name, payload, unique_key, service, tenant, user_id, project,
        'completed', moment, result
      FROM moved
    ), counted AS (
      INSERT INTO redrive.tally (queue, day, shard, completed)
      SELECT queue, (moment AT TIME ZONE 'UTC')::date, of_shard, count(*) FROM moved GROUP BY queue
      ON CONFLICT (queue, day, shard) DO UPDATE SET completed = tally.completed + excluded.completed
    )
    SELECT array_agg(lease), array_agg(id) FILTER (WHERE redrives > 0) INTO done, redriven FROM moved;
    IF redriven IS NOT NULL THEN PERFORM redrive.recovered(moment, redriven); END IF;
    settled := settled || done;
    EXIT WHEN cardinality(settled) = cardinality(asked);
    -- Some rows are not where they were at their claim: something was noted on them, or they are not ours any more.
    SELECT f.places, f.leases, f.ids, f.results INTO places, leases, ids, results
    FROM redrive.find_claimed(leases, ids, results) f;
    EXIT WHEN places IS NULL;
  END LOOP;
  IF cardinality(settled) < cardinality(asked) THEN
    RETURN QUERY SELECT unnest(asked) EXCEPT SELECT unnest(settled);
  END IF;
END $$;
