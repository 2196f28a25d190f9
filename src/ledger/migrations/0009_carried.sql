-- Jobs that a broker carries (RabbitMQ, Redis) are not rows here until something goes wrong with them. What the broker
-- holds is counted by the processes that see it, so that statistics show every job: `source` is the broker, for what
-- waits in it, or a worker's session, for what it has in its hands. One that is not renewed is removed by whoever counts next.
CREATE TABLE redrive.carried_count (
  queue   text COLLATE "C" NOT NULL,
  source  text COLLATE "C" NOT NULL,
  waiting bigint           NOT NULL,
  active  bigint           NOT NULL,
  at      timestamptz      NOT NULL,
  PRIMARY KEY (queue, source)
) WITH (fillfactor = 50);

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
  SELECT queue, count(*) AS dead FROM redrive.dead_letter
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

-- Which dead letters are shown in a queue of the broker. `lease` is the death that is shown: one that died again is shown
-- again.
CREATE TABLE redrive.mirrored_letter (
  id     uuid             PRIMARY KEY,
  mirror text COLLATE "C" NOT NULL,
  lease  bigint           NOT NULL,
  at     timestamptz      NOT NULL
);
