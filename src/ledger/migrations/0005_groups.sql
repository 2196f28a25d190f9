-- Failures of one cause, as a work item (docs/decisions/0012).

CREATE TYPE redrive.group_status AS ENUM ('open', 'acknowledged', 'resolved', 'muted');

-- How often each cause failed: kept by the statement that records the failures, one row a batch and cause. Like `tally`,
-- each settling lane adds to rows of its own (`shard`) and nobody waits for a hot one; recovery folds what is old or of an
-- ended session. `bucket`: five minutes, then a day, in the end the epoch. `noticed`: its cause has a group; only new rows
-- have none.
CREATE TABLE redrive.failure_tally (
  fingerprint text COLLATE "C" NOT NULL,
  queue       text COLLATE "C" NOT NULL,
  name        text COLLATE "C" NOT NULL,
  version     text COLLATE "C" NOT NULL,
  bucket      timestamptz      NOT NULL,
  shard       bigint           NOT NULL,
  failures    bigint           NOT NULL,
  deaths      bigint           NOT NULL,
  last_at     timestamptz      NOT NULL,
  first_job   uuid             NOT NULL,
  sample_job    uuid             NOT NULL,
  noticed     boolean          NOT NULL DEFAULT false,
  PRIMARY KEY (fingerprint, queue, name, version, bucket, shard)
) WITH (fillfactor = 50);
CREATE INDEX failure_tally_news ON redrive.failure_tally (fingerprint) WHERE NOT noticed;

-- Made from the tally within a second, or when somebody looks. `last_seen`, `failures` and `deaths` are those of the
-- whole group, of what was merged into it too, as of the last look at the tally, which is the truth.
CREATE TABLE redrive.failure_group (
  fingerprint       text COLLATE "C" PRIMARY KEY,
  title             text                 NOT NULL,
  kind              redrive.failure_kind NOT NULL,
  error_type        text,
  service           text COLLATE "C",
  first_seen        timestamptz          NOT NULL,
  first_version     text,
  last_seen         timestamptz          NOT NULL,
  failures          bigint               NOT NULL,
  deaths            bigint               NOT NULL,
  announced         boolean              NOT NULL DEFAULT false,
  status            redrive.group_status NOT NULL DEFAULT 'open',
  assignee          text COLLATE "C",
  priority          smallint             NOT NULL DEFAULT 5,
  notes             text,
  resolved_at       timestamptz,
  resolved_by       text,
  regressed_at      timestamptz,
  regressed_version text,
  regressions       integer              NOT NULL DEFAULT 0,
  merged_into       text COLLATE "C",
  version           integer              NOT NULL DEFAULT 1,
  updated_at        timestamptz          NOT NULL,
  CONSTRAINT failure_group_priority CHECK (priority BETWEEN 0 AND 10),
  CONSTRAINT failure_group_resolved CHECK ((resolved_at IS NOT NULL) = (status = 'resolved')),
  CONSTRAINT failure_group_not_into_itself CHECK (merged_into <> fingerprint)
);
CREATE INDEX failure_group_by_last_seen ON redrive.failure_group (last_seen, fingerprint) WHERE merged_into IS NULL;
CREATE INDEX failure_group_by_failures ON redrive.failure_group (failures, fingerprint) WHERE merged_into IS NULL;
CREATE INDEX failure_group_members ON redrive.failure_group (merged_into) WHERE merged_into IS NOT NULL;

-- Makes groups of what the tally has and nobody noticed. A function for the sake of its plan: whether or not there are
-- statistics, the few new rows are read from their index. Rows that a lane is just adding to are left for the next look:
-- nobody who settles waits for us, nor we for them. Groups are made in the order of their key, so that two who make the
-- same ones do not wait for each other in a circle. The title is the type and message of the first failure.
CREATE FUNCTION redrive.make_groups(at timestamptz, most integer) RETURNS TABLE (fingerprint text, is_made boolean)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  WITH news AS MATERIALIZED (
    SELECT t.ctid AS place, t.fingerprint FROM redrive.failure_tally t WHERE NOT t.noticed
    ORDER BY t.fingerprint LIMIT most FOR UPDATE SKIP LOCKED
  ), cause AS MATERIALIZED (
    SELECT DISTINCT n.fingerprint FROM news n
    WHERE (SELECT 1 FROM redrive.failure_group g WHERE g.fingerprint = n.fingerprint) IS NULL
  ), made AS (
    INSERT INTO redrive.failure_group (fingerprint, title, kind, error_type, service, first_seen, first_version, last_seen,
      failures, deaths, updated_at)
    SELECT c.fingerprint,
      CASE WHEN char_length(a.title) > 200 THEN left(a.title, 199) || '…' ELSE coalesce(nullif(a.title, ''), c.fingerprint) END,
      coalesce(a.kind, 'permanent'), a.error_type, a.service, least(t.first_at, a.finished_at), t.version, t.last_at,
      t.failures, t.deaths, coalesce(at, now())
    FROM cause c CROSS JOIN LATERAL (
      SELECT min(t.last_at) AS first_at, max(t.last_at) AS last_at, sum(t.failures) AS failures, sum(t.deaths) AS deaths,
        (array_agg(t.first_job ORDER BY t.bucket, t.last_at))[1] AS first_job,
        (array_agg(nullif(t.version, '') ORDER BY t.bucket, t.last_at))[1] AS version
      FROM redrive.failure_tally t WHERE t.fingerprint = c.fingerprint
    ) t LEFT JOIN LATERAL (
      SELECT a.*, concat_ws(': ', a.error_type, nullif(split_part(a.message, E'\n', 1), '')) AS title
      FROM redrive.attempt a WHERE a.job_id = t.first_job AND a.fingerprint COLLATE "C" = c.fingerprint
      ORDER BY a.lease LIMIT 1
    ) a ON true
    ORDER BY c.fingerprint
    ON CONFLICT DO NOTHING RETURNING failure_group.fingerprint
  ), marked AS (
    UPDATE redrive.failure_tally t SET noticed = true WHERE t.ctid = ANY (ARRAY(SELECT place FROM news))
  )
  SELECT n.fingerprint, n.fingerprint IN (SELECT m.fingerprint FROM made m) FROM news n;
END $$;

CREATE VIEW redrive.failure_groups AS
SELECT fingerprint, title, kind::text AS failure_kind, error_type, service, status::text AS status,
       regressed_at IS NOT NULL AS regressed, assignee AS assigned_to, priority, notes AS admin_notes, first_seen, last_seen,
       first_version, failures, deaths, resolved_at, resolved_by, regressed_at, merged_into, updated_at
FROM redrive.failure_group;
