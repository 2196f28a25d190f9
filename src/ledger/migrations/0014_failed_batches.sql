-- What ends badly, as functions like those of what ends well (0002_hot_path.sql): planned once a connection, which costs as
-- much as burying a hundred jobs, and by the places that the claims told (docs/decisions/0009).
--
-- A batch of failures is mostly one cause. What they have in common are `shapes`; `likes` says which of them each one is like,
-- counted from one (ledger/settle/shared-failure.ts). All lists are in the order of `leases`; `reasons` are null where each has
-- that of its shape.

-- A shape as it travels. The stack is `before`, the message and `after`, or all `after` where it does not show the message.
CREATE TYPE redrive.failure_shape AS (
  outcome redrive.attempt_outcome, decision redrive.decision, reason text, kind redrive.failure_kind, because text,
  error_type text, error_code text, before text, after text, causes text, http_status smallint, retry_after_ms bigint,
  service text, fingerprint text,
  -- What a deferral says beyond the attempt's record.
  state redrive.job_state, unlogged boolean, refund integer, snoozes integer, holds integer, interruptions integer,
  lost smallint, held_by text
);

-- Where claimed jobs lie now, of those that are still as they were claimed.
CREATE FUNCTION redrive.places_of(leases bigint[], ids uuid[]) RETURNS tid[] LANGUAGE sql STABLE
SET enable_indexscan = on SET enable_nestloop = on SET enable_hashjoin = off SET jit = off AS $$
  SELECT array_agg(j.ctid) FROM unnest(leases, ids) AS e(lease, id)
  JOIN redrive.job j ON j.id = e.id AND j.lease = e.lease AND j.state = 'active'
$$;

CREATE FUNCTION redrive.version_of(of_session bigint) RETURNS text LANGUAGE sql STABLE SET enable_indexscan = on AS $$
  SELECT coalesce((SELECT s.version FROM redrive.session s WHERE s.id = of_session), '')
$$;

-- Jobs that came back from a dead letter died again: it is the same one, reopened with the new failure, its notes, payload
-- and history kept. In the order of their ids, as everyone who locks letters.
CREATE FUNCTION redrive.reopen(moment timestamptz, jobs redrive.job[]) RETURNS void LANGUAGE sql
SET enable_indexscan = on SET enable_nestloop = on SET enable_hashjoin = off SET jit = off AS $$
  INSERT INTO redrive.dead_letter AS d (id, lease, died_at, updated_at, job_created_at, total_attempts, max_attempts, lost,
    redrives, job_priority, http_status, outcome, kind, queue, name, payload, reason, message, fingerprint, service,
    unique_key, tenant, user_id, project)
  SELECT m.id, a.lease, moment, moment, m.created_at, m.attempt, m.max_attempts, m.lost + (a.outcome = 'lost')::integer,
    m.redrives, m.priority, a.http_status, a.outcome, a.kind, m.queue, m.name, m.payload, a.reason, a.message,
    a.fingerprint, a.service, m.unique_key, m.tenant, m.user_id, m.project
  FROM unnest(jobs) m JOIN redrive.attempt a ON a.job_id = m.id AND a.lease = m.lease ORDER BY m.id
  ON CONFLICT (id) DO UPDATE
  SET status = 'pending', resolved_at = NULL, resolution = NULL, seq = excluded.seq, lease = excluded.lease,
    died_at = excluded.died_at, updated_at = excluded.updated_at,
    total_attempts = d.total_attempts + excluded.total_attempts, max_attempts = excluded.max_attempts,
    lost = d.lost + excluded.lost, redrives = excluded.redrives, http_status = excluded.http_status,
    outcome = excluded.outcome, kind = excluded.kind, reason = excluded.reason, message = excluded.message,
    fingerprint = excluded.fingerprint, service = excluded.service
$$;

-- Death: jobs and their dead letters change places. Returns the leases that were refused.
-- INVARIANT: a row is touched only if it still carries the lease of this very claim.
CREATE FUNCTION redrive.bury(
  at timestamptz, of_shard bigint, places tid[], leases bigint[], ids uuid[], likes integer[], shapes json, messages json,
  reasons json
) RETURNS SETOF bigint LANGUAGE plpgsql
SET enable_seqscan = off SET enable_indexscan = off SET enable_bitmapscan = off SET enable_nestloop = off
SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment  timestamptz := coalesce(at, now());
  settled bigint[] := '{}';
  done    bigint[];
  back    redrive.job[];
BEGIN
  FOR look IN 1..2 LOOP
    WITH ended AS MATERIALIZED (
      SELECT * FROM ROWS FROM (
        unnest(leases), unnest(ids), unnest(likes), json_array_elements_text(messages),
        json_array_elements_text(reasons)
      ) AS e(lease, id, nth, message, reason)
    ), shape AS MATERIALIZED (
      SELECT * FROM json_populate_recordset(NULL::redrive.failure_shape, shapes) WITH ORDINALITY
        AS s(outcome, decision, reason, kind, because, error_type, error_code, before, after, causes, http_status,
             retry_after_ms, service, fingerprint, state, unlogged, refund, snoozes, holds, interruptions, lost, held_by, nth)
    ), moved AS (
      DELETE FROM redrive.job j USING ended e
      WHERE j.ctid = ANY (places) AND j.lease = e.lease AND j.id = e.id AND j.state = 'active'
      RETURNING j.id, j.lease, j.created_at, j.claimed_at, j.session_id, j.attempt, j.lost, j.redrives, j.max_attempts,
        j.priority, j.queue, j.name, j.payload, j.unique_key, j.service, j.tenant, j.user_id, j.project, e.nth, e.message,
        e.reason AS own_reason, CASE WHEN j.redrives > 0 THEN j END AS job
    ), died AS MATERIALIZED (
      SELECT m.*, s.outcome, s.decision, s.kind, s.because, s.error_type, s.error_code, s.causes, s.http_status,
        s.retry_after_ms, s.fingerprint COLLATE "C" AS fingerprint, coalesce(m.own_reason, s.reason) AS reason,
        coalesce(s.service, m.service) AS called,
        CASE WHEN s.before IS NULL THEN s.after ELSE s.before || m.message || s.after END AS stack
      FROM moved m JOIN shape s ON s.nth = m.nth
    ), logged AS (
      INSERT INTO redrive.attempt (job_id, lease, number, round, started_at, finished_at, session_id, http_status,
        retry_after_ms, outcome, decision, kind, queue, name, reason, because, error_type, error_code, message, stack,
        causes, service, fingerprint)
      SELECT id, lease, attempt, redrives, claimed_at, moment, session_id, http_status, retry_after_ms, outcome, decision,
        kind, queue, name, reason, because, error_type, error_code, message, stack, causes::json, called, fingerprint
      FROM died
    ), buried AS (
      INSERT INTO redrive.dead_letter (id, lease, died_at, updated_at, job_created_at, total_attempts, max_attempts, lost,
        redrives, job_priority, http_status, outcome, kind, queue, name, payload, reason, message, fingerprint, service,
        unique_key, tenant, user_id, project)
      SELECT id, lease, moment, moment, created_at, attempt, max_attempts, lost + (outcome = 'lost')::integer, redrives,
        priority, http_status, outcome, kind, queue, name, payload, reason, message, fingerprint, called, unique_key,
        tenant, user_id, project
      FROM died WHERE redrives = 0
    ), counted AS (
      INSERT INTO redrive.tally (queue, day, shard, failed, dead)
      SELECT queue, (moment AT TIME ZONE 'UTC')::date, of_shard, count(*), count(*) FROM died GROUP BY queue
      ON CONFLICT (queue, day, shard) DO UPDATE
      SET failed = tally.failed + excluded.failed, dead = tally.dead + excluded.dead
    ), caused AS (
      -- In the order of the key: lanes that share a shard never wait for each other in a circle.
      INSERT INTO redrive.failure_tally AS t (fingerprint, queue, name, version, bucket, shard, failures, deaths, last_at,
        first_job, sample_job)
      SELECT fingerprint, queue, name, version, date_bin(interval '5 minutes', moment, timestamptz 'epoch'), of_shard,
        sum(failures), sum(failures), moment, (array_agg(first_job))[1], (array_agg(sample_job))[1]
      FROM (
        SELECT fingerprint, queue, name, count(*) AS failures, (array_agg(id))[1] AS first_job,
          (array_agg(id))[count(*)::integer] AS sample_job, redrive.version_of(session_id) AS version
        FROM died GROUP BY fingerprint, queue, name, session_id
      ) by_session
      GROUP BY fingerprint, queue, name, version ORDER BY fingerprint, queue, name, version
      ON CONFLICT (fingerprint, queue, name, version, bucket, shard) DO UPDATE
      SET failures = t.failures + excluded.failures, deaths = t.deaths + excluded.deaths,
          last_at = greatest(t.last_at, excluded.last_at), sample_job = excluded.sample_job
    )
    SELECT array_agg(lease), array_agg(job) FILTER (WHERE redrives > 0) INTO done, back FROM died;
    IF back IS NOT NULL THEN PERFORM redrive.reopen(moment, back); END IF;
    settled := settled || done;
    EXIT WHEN cardinality(settled) = cardinality(leases);
    -- Some rows are not where they were at their claim: something was noted on them, or they are not ours any more.
    places := redrive.places_of(leases, ids);
    EXIT WHEN places IS NULL;
  END LOOP;
  IF cardinality(settled) < cardinality(leases) THEN
    RETURN QUERY SELECT unnest(leases) EXCEPT SELECT unnest(settled);
  END IF;
END $$;

-- Not now: a retry, a hold or a return. Jobs stay live, their leases end, and what they spent is counted. What is due at once
-- is announced, if there is a channel. Returns the leases that were refused.
-- INVARIANT: a row is touched only if it still carries the lease of this very claim.
CREATE FUNCTION redrive.defer(
  at timestamptz, channel text, of_shard bigint, places tid[], leases bigint[], ids uuid[], likes integer[], shapes json,
  messages json, reasons json, delays bigint[]
) RETURNS SETOF bigint LANGUAGE plpgsql
SET enable_seqscan = off SET enable_indexscan = off SET enable_bitmapscan = off SET enable_nestloop = off
SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment  timestamptz := coalesce(at, now());
  settled bigint[] := '{}';
  done    bigint[];
  due     text[];
BEGIN
  FOR look IN 1..2 LOOP
    WITH ended AS MATERIALIZED (
      SELECT * FROM ROWS FROM (
        unnest(leases), unnest(ids), unnest(likes), json_array_elements_text(messages),
        json_array_elements_text(reasons), unnest(delays)
      ) AS e(lease, id, nth, message, reason, delay_ms)
    ), shape AS MATERIALIZED (
      SELECT * FROM json_populate_recordset(NULL::redrive.failure_shape, shapes) WITH ORDINALITY
        AS s(outcome, decision, reason, kind, because, error_type, error_code, before, after, causes, http_status,
             retry_after_ms, service, fingerprint, state, unlogged, refund, snoozes, holds, interruptions, lost, held_by, nth)
    ), held AS MATERIALIZED (
      SELECT j.ctid AS place, j.id, j.lease, j.attempt, j.redrives, j.claimed_at, j.session_id, j.queue, j.name, j.service
      FROM redrive.job j WHERE j.ctid = ANY (places) AND j.state = 'active' FOR UPDATE
    ), moved AS MATERIALIZED (
      SELECT h.*, e.message, e.delay_ms, s.outcome, s.decision, s.kind, s.because, s.error_type, s.error_code, s.causes,
        s.http_status, s.retry_after_ms, s.fingerprint COLLATE "C" AS fingerprint, coalesce(e.reason, s.reason) AS reason,
        coalesce(s.service, h.service) AS called,
        CASE WHEN s.before IS NULL THEN s.after ELSE s.before || e.message || s.after END AS stack, s.state,
        coalesce(s.unlogged, false) AS unlogged, s.refund, s.snoozes, s.holds, s.interruptions, s.lost, s.held_by,
        moment + e.delay_ms * interval '1 millisecond' AS next_run_at
      FROM held h JOIN ended e ON e.lease = h.lease AND e.id = h.id JOIN shape s ON s.nth = e.nth
    ), deferred AS (
      UPDATE redrive.job j
      SET state = m.state, in_line = m.state = 'waiting', run_at = coalesce(m.next_run_at, moment),
          attempt = j.attempt - m.refund, snoozes = j.snoozes + m.snoozes, holds = j.holds + m.holds,
          interruptions = j.interruptions + m.interruptions, lost = j.lost + m.lost,
          lease = NULL, session_id = NULL, claimed_at = NULL, progress = NULL, held_by = m.held_by,
          first_claimed_at = CASE WHEN m.unlogged AND j.attempt = m.refund THEN NULL ELSE j.first_claimed_at END,
          fingerprint = coalesce(m.fingerprint, j.fingerprint)
      FROM moved m
      WHERE j.ctid = ANY (ARRAY(SELECT place FROM moved)) AND j.lease = m.lease AND j.id = m.id AND j.state = 'active'
      RETURNING m.lease, j.queue, j.state
    ), logged AS (
      INSERT INTO redrive.attempt (job_id, lease, number, round, started_at, finished_at, next_run_at, delay_ms, session_id,
        http_status, retry_after_ms, outcome, decision, kind, queue, name, reason, because, error_type, error_code, message,
        stack, causes, service, fingerprint)
      SELECT id, lease, attempt, redrives, claimed_at, moment, next_run_at, delay_ms, session_id, http_status,
        retry_after_ms, outcome, decision, kind, queue, name, reason, because, error_type, error_code, message, stack,
        causes::json, called, fingerprint
      FROM moved WHERE NOT unlogged
    ), counted AS (
      INSERT INTO redrive.tally (queue, day, shard, failed)
      SELECT queue, (moment AT TIME ZONE 'UTC')::date, of_shard, count(*) FILTER (WHERE outcome IN ('failed', 'timed_out', 'lost'))
      FROM moved WHERE NOT unlogged GROUP BY queue
      ON CONFLICT (queue, day, shard) DO UPDATE SET failed = tally.failed + excluded.failed
    ), caused AS (
      -- In the order of the key: lanes that share a shard never wait for each other in a circle.
      INSERT INTO redrive.failure_tally AS t (fingerprint, queue, name, version, bucket, shard, failures, deaths, last_at,
        first_job, sample_job)
      SELECT fingerprint, queue, name, version, date_bin(interval '5 minutes', moment, timestamptz 'epoch'), of_shard,
        sum(failures), 0, moment, (array_agg(first_job))[1], (array_agg(sample_job))[1]
      FROM (
        SELECT fingerprint, queue, name, count(*) AS failures, (array_agg(id))[1] AS first_job,
          (array_agg(id))[count(*)::integer] AS sample_job, redrive.version_of(session_id) AS version
        FROM moved WHERE fingerprint IS NOT NULL AND NOT unlogged GROUP BY fingerprint, queue, name, session_id
      ) by_session
      GROUP BY fingerprint, queue, name, version ORDER BY fingerprint, queue, name, version
      ON CONFLICT (fingerprint, queue, name, version, bucket, shard) DO UPDATE
      SET failures = t.failures + excluded.failures, deaths = t.deaths + excluded.deaths,
          last_at = greatest(t.last_at, excluded.last_at), sample_job = excluded.sample_job
    )
    SELECT array_agg(lease), array_agg(DISTINCT queue) FILTER (WHERE state = 'waiting') INTO done, due FROM deferred;
    IF channel IS NOT NULL AND due IS NOT NULL THEN PERFORM pg_notify(channel, q) FROM unnest(due) q; END IF;
    settled := settled || done;
    EXIT WHEN cardinality(settled) = cardinality(leases);
    -- Some rows are not where they were at their claim: something was noted on them, or they are not ours any more.
    places := redrive.places_of(leases, ids);
    EXIT WHEN places IS NULL;
  END LOOP;
  IF cardinality(settled) < cardinality(leases) THEN
    RETURN QUERY SELECT unnest(leases) EXCEPT SELECT unnest(settled);
  END IF;
END $$;
