-- What a person says at run time about how jobs are retried: for a queue, or for a job name. Each change is a row of its
-- own; the newest version of a target holds, and one without a policy took it away.
CREATE TABLE redrive.policy (
  scope   text             NOT NULL,
  target  text COLLATE "C" NOT NULL,
  version integer          NOT NULL,
  policy  json,
  set_at  timestamptz      NOT NULL,
  set_by  text             NOT NULL,
  reason  text,
  PRIMARY KEY (scope, target, version),
  CONSTRAINT policy_scope CHECK (scope IN ('queue', 'job'))
);

-- What the counts of each queue were at the full minutes of the last hours: from then to now is how it goes. Written once
-- a minute by whichever process comes first; `counts`: [{ queue, day, completed, failed, dead }], as in `tally`.
CREATE TABLE redrive.pulse (
  at     timestamptz PRIMARY KEY,
  counts json        NOT NULL
);

-- Since when the job at the front of each lane and priority has been waiting, in at most `most` steps: from each one found
-- the walk goes on behind all of its priority, so that its length does not depend on how many wait.
CREATE FUNCTION redrive.backlog(most integer)
RETURNS TABLE (of_queue text, of_name text, since timestamptz) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  front    record;
  at_queue text := '';
  at_name  text := '';
  at_line  bigint := 0;
BEGIN
  FOR step IN 1..most LOOP
    SELECT j.queue, j.name, j.line, j.run_at INTO front FROM redrive.job j
    WHERE j.in_line AND (j.queue, j.name, j.line) > (at_queue, at_name, at_line) AND j.state = 'waiting'
    ORDER BY j.queue, j.name, j.line LIMIT 1;
    EXIT WHEN NOT FOUND;
    of_queue := front.queue;
    of_name := front.name;
    since := front.run_at;
    RETURN NEXT;
    at_queue := front.queue;
    at_name := front.name;
    at_line := front.line | ((1::bigint << 56) - 1);
  END LOOP;
END $$;

-- What failed over a range of time is read by this, the newest first. A bucket never changes, so that counting touches it
-- only when a row is made.
CREATE INDEX failure_tally_time ON redrive.failure_tally (bucket);
