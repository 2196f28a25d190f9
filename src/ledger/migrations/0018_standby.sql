-- A worker with little to do stands by for its lanes, and whoever enqueues a job there hands it over: claimed in the same
-- commit, and sent along with the wake-up (docs/decisions/0029). Nothing is lost with these rows, so they are not in the WAL:
-- without them a job waits in line and is claimed from there.

-- `channel`: where that worker's process listens. Its name is a secret, because any role of a database may LISTEN to any channel,
-- and payloads are said there. `seen_at`: when the worker last said that it is there. `spot`: where it stands among the others,
-- twice, a full turn apart: from any point of the first turn there is a next one, and who that is, is a matter of chance.
CREATE UNLOGGED TABLE redrive.standby (
  session_id bigint            NOT NULL,
  queue      text COLLATE "C"  NOT NULL,
  name       text COLLATE "C"  NOT NULL,
  spot       double precision  NOT NULL,
  seen_at    timestamptz       NOT NULL,
  channel    text              NOT NULL,
  PRIMARY KEY (session_id, queue, name, spot)
) WITH (fillfactor = 50);

CREATE INDEX standby_next ON redrive.standby (queue, name, spot);

-- Who may enqueue may hand over.
DO $$
DECLARE
  role text;
BEGIN
  FOR role IN
    SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
    FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
    WHERE c.oid = 'redrive.job'::regclass AND a.grantee <> c.relowner AND a.privilege_type = 'INSERT'
  LOOP
    EXECUTE format('GRANT SELECT ON redrive.standby TO %s', role);
    EXECUTE format('GRANT SELECT (id, ended_at, expires_at) ON redrive.session TO %s', role);
    EXECUTE format('GRANT SELECT (name, paused_at) ON redrive.queue TO %s', role);
    EXECUTE format('GRANT USAGE ON SEQUENCE redrive.lease_seq TO %s', role);
  END LOOP;
END $$;

-- One job that is due now, alone in its transaction: handed to a worker that stands by, or put in line. Returns true if it was
-- handed over. Not past others who wait: neither at the end of the line nor among the first of it.
-- INVARIANT: as for a claim, a session that has ended or lapsed is given nothing, and of a paused queue nothing is given.
CREATE FUNCTION redrive.enqueue_one(
  at timestamptz, to_all text, of_queue text, of_name text, of_service text, of_max_attempts smallint, of_priority smallint,
  of_id uuid, of_payload json, of_tenant text, of_user text, of_project text, of_trace text
) RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment   timestamptz := coalesce(at, now());
  was_idle boolean := coalesce((
    SELECT j.state <> 'waiting' FROM redrive.job j WHERE j.queue = of_queue AND j.name = of_name AND j.in_line
    ORDER BY j.line DESC LIMIT 1), true);
  start    double precision := random();
  taker    bigint;
  to_taker text;
  said     text;
BEGIN
  IF was_idle THEN
    SELECT b.session_id, b.channel INTO taker, to_taker FROM redrive.standby b
    WHERE b.queue = of_queue AND b.name = of_name AND b.spot >= start AND b.seen_at > moment - interval '5 seconds'
      AND EXISTS (SELECT FROM redrive.session s WHERE s.id = b.session_id AND s.ended_at IS NULL AND s.expires_at > moment)
      AND NOT EXISTS (SELECT FROM redrive.queue q WHERE q.name = of_queue AND q.paused_at IS NOT NULL)
    ORDER BY b.spot LIMIT 1;
  END IF;
  -- Whoever listens there has the lock (ledger/databases/pg-listener.ts). If we can have it, nobody does any more: it was killed.
  IF taker IS NOT NULL AND (
    pg_try_advisory_xact_lock_shared(hashtextextended(to_taker, 0))
    OR EXISTS (
      SELECT FROM (
        SELECT j.state FROM redrive.job j WHERE j.queue = of_queue AND j.name = of_name AND j.in_line ORDER BY j.line LIMIT 100
      ) first WHERE first.state = 'waiting')
  ) THEN taker := NULL; END IF;
  IF taker IS NULL THEN
    INSERT INTO redrive.job (id, state, queue, name, service, max_attempts, priority, payload, run_at, created_at, tenant, user_id,
                             project, trace)
    VALUES (of_id, 'waiting', of_queue, of_name, of_service, of_max_attempts, of_priority, of_payload, moment, moment, of_tenant,
            of_user, of_project, of_trace);
    IF was_idle THEN PERFORM pg_notify(to_all, of_queue); END IF;
    RETURN false;
  END IF;
  INSERT INTO redrive.job AS j (id, state, queue, name, service, max_attempts, priority, payload, run_at, created_at, tenant,
                                user_id, project, trace, attempt, lease, session_id, claimed_at, first_claimed_at)
  VALUES (of_id, 'active', of_queue, of_name, of_service, of_max_attempts, of_priority, of_payload, moment, moment, of_tenant,
          of_user, of_project, of_trace, 1, nextval('redrive.lease_seq'), taker, moment, moment)
  RETURNING concat(taker, E'\x1e', redrive.packed(j.ctid, j)) INTO said;
  PERFORM pg_notify(to_taker, said);
  RETURN true;
END $$;

-- A session says that it is there, and asks what it has. Returns in how many places it stands, and then, each as a claim brings
-- it, the jobs of these lanes that it has had for so long, as far as they are among the first of their line.
CREATE FUNCTION redrive.stand(at timestamptz, of_session bigint, lanes json, for_ms double precision)
RETURNS SETOF text LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment timestamptz := coalesce(at, now());
  places bigint;
BEGIN
  UPDATE redrive.standby SET seen_at = moment WHERE session_id = of_session;
  GET DIAGNOSTICS places = ROW_COUNT;
  RETURN NEXT places::text;
  RETURN QUERY
  SELECT redrive.packed(j.place, j.job)
  FROM json_to_recordset(lanes) AS l(queue text COLLATE "C", name text COLLATE "C")
  CROSS JOIN LATERAL (
    SELECT j.ctid AS place, j AS job, j.session_id, j.state, j.claimed_at FROM redrive.job j
    WHERE j.queue = l.queue AND j.name = l.name AND j.in_line ORDER BY j.line LIMIT 10000
  ) j
  WHERE j.session_id = of_session AND j.state = 'active' AND j.claimed_at <= moment - for_ms * interval '1 millisecond';
END $$;
