-- How many dead letters there are, kept as they change: whoever looks at a million of them does not wait while they are
-- counted. Each connection adds to rows of its own (`shard`, its process in the server), so that no two ever wait for one row;
-- a row may be negative, only their sum means something. Recovery folds those of connections that are gone into shard 0.
CREATE TABLE redrive.dead_letter_count (
  queue  text COLLATE "C"        NOT NULL,
  status redrive.recovery_status NOT NULL,
  kind   redrive.failure_kind    NOT NULL,
  shard  integer                 NOT NULL,
  count  bigint                  NOT NULL,
  PRIMARY KEY (queue, status, kind, shard)
) WITH (fillfactor = 50);

CREATE FUNCTION redrive.count_letters() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = on SET jit = off AS $$
BEGIN
  CASE TG_OP
  WHEN 'INSERT' THEN
    INSERT INTO redrive.dead_letter_count AS c (queue, status, kind, shard, count)
    SELECT queue, status, kind, pg_backend_pid(), count(*) FROM letters_now GROUP BY queue, status, kind
    ON CONFLICT (queue, status, kind, shard) DO UPDATE SET count = c.count + excluded.count;
  WHEN 'DELETE' THEN
    INSERT INTO redrive.dead_letter_count AS c (queue, status, kind, shard, count)
    SELECT queue, status, kind, pg_backend_pid(), -count(*) FROM letters_before GROUP BY queue, status, kind
    ON CONFLICT (queue, status, kind, shard) DO UPDATE SET count = c.count + excluded.count;
  ELSE
    INSERT INTO redrive.dead_letter_count AS c (queue, status, kind, shard, count)
    SELECT queue, status, kind, pg_backend_pid(), sum(change) FROM (
      SELECT queue, status, kind, 1 AS change FROM letters_now UNION ALL SELECT queue, status, kind, -1 FROM letters_before
    ) changed GROUP BY queue, status, kind HAVING sum(change) <> 0
    ON CONFLICT (queue, status, kind, shard) DO UPDATE SET count = c.count + excluded.count;
  END CASE;
  RETURN NULL;
END $$;

CREATE TRIGGER count_inserted AFTER INSERT ON redrive.dead_letter
REFERENCING NEW TABLE AS letters_now FOR EACH STATEMENT EXECUTE FUNCTION redrive.count_letters();
CREATE TRIGGER count_updated AFTER UPDATE ON redrive.dead_letter
REFERENCING OLD TABLE AS letters_before NEW TABLE AS letters_now FOR EACH STATEMENT EXECUTE FUNCTION redrive.count_letters();
CREATE TRIGGER count_deleted AFTER DELETE ON redrive.dead_letter
REFERENCING OLD TABLE AS letters_before FOR EACH STATEMENT EXECUTE FUNCTION redrive.count_letters();

INSERT INTO redrive.dead_letter_count (queue, status, kind, shard, count)
SELECT queue, status, kind, 0, count(*) FROM redrive.dead_letter GROUP BY queue, status, kind;

CREATE OR REPLACE VIEW redrive.dead_letter_queue_summary AS
SELECT queue AS queue_name,
       sum(count)::bigint AS total_failed_jobs,
       coalesce(sum(count) FILTER (WHERE status = 'pending'), 0)::bigint AS pending_recovery,
       coalesce(sum(count) FILTER (WHERE status = 'redriving'), 0)::bigint AS redriving,
       coalesce(sum(count) FILTER (WHERE status = 'recovered'), 0)::bigint AS recovered,
       coalesce(sum(count) FILTER (WHERE status = 'permanently_failed'), 0)::bigint AS permanently_failed
FROM redrive.dead_letter_count GROUP BY queue HAVING sum(count) > 0;

CREATE OR REPLACE VIEW redrive.queue_statistics AS
WITH live AS (
  SELECT queue,
         count(*) FILTER (WHERE state = 'waiting') AS waiting,
         count(*) FILTER (WHERE state = 'active') AS active,
         count(*) FILTER (WHERE state = 'scheduled') AS scheduled,
         count(*) FILTER (WHERE state = 'retrying') AS retrying,
         count(*) FILTER (WHERE state = 'held') AS held,
         min(run_at) FILTER (WHERE state = 'waiting') AS oldest_waiting_at
  FROM redrive.job GROUP BY queue
), carried AS (
  SELECT queue, sum(waiting)::bigint AS waiting, sum(active)::bigint AS active
  FROM redrive.carried_count GROUP BY queue
), ended AS (
  SELECT queue, sum(completed) AS completed, sum(cancelled) AS cancelled FROM redrive.tally GROUP BY queue
), dead AS (
  SELECT queue, sum(count)::bigint AS dead FROM redrive.dead_letter_count
  WHERE status IN ('pending', 'permanently_failed') GROUP BY queue
)
SELECT q.name AS queue_name,
       coalesce(live.waiting, 0) + coalesce(carried.waiting, 0) AS waiting_count,
       coalesce(live.active, 0) + coalesce(carried.active, 0) AS active_count,
       coalesce(ended.completed, 0)::bigint AS completed_count,
       coalesce(dead.dead, 0) AS failed_count,
       coalesce(live.retrying, 0) AS retryable_count,
       coalesce(live.scheduled, 0) AS scheduled_count,
       coalesce(live.held, 0) AS held_count,
       coalesce(ended.cancelled, 0)::bigint AS cancelled_count,
       live.oldest_waiting_at,
       q.paused_at IS NOT NULL AS paused
FROM redrive.queue q
LEFT JOIN live ON live.queue = q.name
LEFT JOIN carried ON carried.queue = q.name
LEFT JOIN ended ON ended.queue = q.name
LEFT JOIN dead ON dead.queue = q.name;
