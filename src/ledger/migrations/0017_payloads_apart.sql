-- Large payloads lie apart from the rows that move (docs/decisions/0026). Postgres keeps a long value in pieces beside its
-- table: a job that goes into the history takes them along, read, written and deleted piece by piece, which cost more than all
-- the rest of its end. Here a payload is written once, and its job, its dead letter and its history have none of their own.

-- Whoever wants to know whether a payload is still needed asks for its id among jobs, dead letters and the history
-- (ledger/retention.ts): it may be in two of them, and a reference would be checked at every move.
-- As text: whoever writes it has made it JSON, and it need not be read through again to see that it is.
CREATE TABLE redrive.payload (
  id   uuid PRIMARY KEY,
  body text NOT NULL
);

-- Who may enqueue, or look at jobs, may do so with large payloads.
DO $$
DECLARE
  granted record;
BEGIN
  FOR granted IN
    SELECT a.privilege_type AS privilege, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS role
    FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
    WHERE c.oid = 'redrive.job'::regclass AND a.grantee <> c.relowner AND a.privilege_type IN ('SELECT', 'INSERT')
  LOOP
    EXECUTE format('GRANT %s ON redrive.payload TO %s', granted.privilege, granted.role);
  END LOOP;
END $$;

-- Null: it lies apart.
ALTER TABLE redrive.job ALTER payload DROP NOT NULL;
ALTER TABLE redrive.finished_job ALTER payload DROP NOT NULL;
ALTER TABLE redrive.dead_letter ALTER payload DROP NOT NULL;

-- Like redrive.enqueue, for jobs of which some have a large payload. Whether it is large is for whoever calls to say of all, and
-- asked again here of each.
CREATE FUNCTION redrive.enqueue_apart(
  at timestamptz, channel text, of_queue text, of_name text, of_service text, of_max_attempts smallint,
  of_priority smallint, ids uuid[], payloads json, options json
) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment   timestamptz := coalesce(at, now());
  was_idle boolean := channel IS NOT NULL AND coalesce((
    SELECT j.state <> 'waiting' FROM redrive.job j WHERE j.queue = of_queue AND j.name = of_name AND j.in_line
    ORDER BY j.line DESC LIMIT 1), true);
  is_due   boolean;
BEGIN
  WITH input AS MATERIALIZED (
    SELECT t.*, octet_length(t.payload::text) > 2000 AS is_large,
           greatest(coalesce(t.run_at, moment + t.delay_ms * interval '1 millisecond'), moment) AS due
    FROM ROWS FROM (
      unnest(ids), json_array_elements(payloads),
      json_to_recordset(coalesce(options, '[]')) AS (priority smallint, delay_ms double precision, run_at timestamptz,
                                                     tenant text, user_id text, project text, trace text)
    ) AS t(id, payload, priority, delay_ms, run_at, tenant, user_id, project, trace)
  ), apart AS (
    INSERT INTO redrive.payload (id, body) SELECT id, payload::text FROM input WHERE is_large
  ), added AS (
    INSERT INTO redrive.job (id, in_line, state, queue, name, service, max_attempts, priority, payload, run_at,
                             created_at, tenant, user_id, project, trace)
    SELECT id, due <= moment, CASE WHEN due <= moment THEN 'waiting' ELSE 'scheduled' END::redrive.job_state, of_queue, of_name,
           of_service, of_max_attempts, coalesce(priority, of_priority), CASE WHEN NOT is_large THEN payload END, due, moment,
           tenant, user_id, project, trace
    FROM input RETURNING in_line
  )
  SELECT bool_or(in_line) INTO is_due FROM added;
  IF was_idle AND is_due THEN PERFORM pg_notify(channel, of_queue); END IF;
END $$;

-- What lies apart is as large as what used to come alone.
CREATE OR REPLACE FUNCTION redrive.parcel(lease bigint, payload json) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN octet_length(payload::text) <= 1000 THEN lease / 50 ELSE -lease END
$$;

-- Claims bring payloads from wherever they are. The functions keep their names: they do for processes of the version before what
-- they always did, and those must not run a job without its payload. Nothing but the payload is changed in them.
DO $$
DECLARE
  claim record;
  body  text := '(SELECT p.body FROM redrive.payload p WHERE p.id = ';
  text  text;
BEGIN
  FOR claim IN
    SELECT oid FROM pg_proc
    WHERE pronamespace = '"redrive_schema_name"'::regnamespace AND proname IN ('claim', 'claim_lanes', 'take', 'take_lanes')
  LOOP
    text := pg_get_functiondef(claim.oid);
    text := replace(text, 'j.payload::text', 'coalesce(j.payload::text, ' || body || 'j.id))');
    text := replace(text, '(j.ctid, j) AS job', '(j.ctid, j) AS job, CASE WHEN j.payload IS NULL THEN j.id END AS apart');
    text := replace(text, 'string_agg(job,', 'string_agg(CASE WHEN apart IS NULL THEN job ELSE concat(job, ' || body || 'apart)) END,');
    EXECUTE text;
  END LOOP;
END $$;

CREATE OR REPLACE VIEW redrive.failed_jobs AS
  SELECT d.id, d.id AS job_id, d.name AS job_type, d.status::text AS status, d.total_attempts AS attempts, d.max_attempts,
         d.message AS last_error,
         (SELECT a.stack FROM redrive.attempt a WHERE a.job_id = d.id AND a.lease = d.lease) AS error_stacktrace,
         coalesce(d.payload, (SELECT p.body::json FROM redrive.payload p WHERE p.id = d.id)) AS input_data, d.died_at AS created_at, d.updated_at
  FROM redrive.dead_letter d;

CREATE OR REPLACE VIEW redrive.dead_letter_queue AS
  SELECT d.id, d.id AS original_job_id, d.queue AS original_queue_name, d.name AS original_job_name,
         coalesce(d.payload, (SELECT p.body::json FROM redrive.payload p WHERE p.id = d.id)) AS original_job_data, d.reason AS failure_reason,
         d.kind::text AS failure_kind, d.message AS error_message,
         (SELECT a.stack FROM redrive.attempt a WHERE a.job_id = d.id AND a.lease = d.lease) AS error_stacktrace,
         d.total_attempts, d.status::text AS recovery_status, d.recovery_attempts, d.notes AS admin_notes,
         d.assigned_to, d.priority, d.died_at AS created_at, d.updated_at, d.resolved_at
  FROM redrive.dead_letter d;
