-- Rate limits, exact over the fleet: each limit and key has one schedule of slots, a job starts at a slot or not now, and
-- whoever takes slots holds the schedule's row while it does (docs/decisions/0011).

-- One row a limit and key that was used lately. Slots lie `spacing_ms` apart; `next_at` is the next one that nobody has.
-- It may lie in the past: slots that nobody took are saved for `saved_ms`, for a burst.
CREATE TABLE redrive.rate_limit (
  name       text COLLATE "C" NOT NULL,
  key        text COLLATE "C" NOT NULL,
  next_at    timestamptz      NOT NULL,
  spacing_ms double precision NOT NULL,
  saved_ms   double precision NOT NULL,
  -- About when a job that has to be held now would get its turn. For people; order does not depend on it.
  turn_at    timestamptz      NOT NULL,
  refused_at timestamptz,
  -- When to see whether held jobs can go; null while none is held.
  release_at timestamptz,
  PRIMARY KEY (name, key),
  CONSTRAINT rate_limit_pace CHECK (spacing_ms > 0 AND saved_ms >= 0)
) WITH (fillfactor = 50);
CREATE INDEX rate_limit_release ON redrive.rate_limit (release_at) WHERE release_at IS NOT NULL;

-- What a person set at run time, for all keys of a limit ('') or for one. It beats what the code says.
CREATE TABLE redrive.rate_limit_setting (
  name        text COLLATE "C" NOT NULL,
  key         text COLLATE "C" NOT NULL,
  "limit"     integer          NOT NULL,
  interval_ms bigint           NOT NULL,
  burst       integer          NOT NULL,
  spacing_ms  double precision NOT NULL,
  saved_ms    double precision NOT NULL,
  late_ms     double precision NOT NULL,
  set_at      timestamptz      NOT NULL,
  set_by      text             NOT NULL,
  PRIMARY KEY (name, key),
  CONSTRAINT rate_limit_setting_pace CHECK (spacing_ms > 0 AND saved_ms >= 0)
);

-- Held jobs by what holds them, in the order in which they go. A claim changes none of these columns.
CREATE INDEX job_held_by ON redrive.job (held_by, in_line, line) WHERE held_by IS NOT NULL;

CREATE FUNCTION redrive.rate_held_by(name text, key text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT name || E'\n' || key
$$;

-- How far apart the slots of a key are now, how long unused ones are saved, and how late a start may be.
CREATE FUNCTION redrive.rate_pace(of_name text, of_key text, INOUT spacing double precision, INOUT saved double precision,
                                  INOUT late double precision)
LANGUAGE plpgsql STABLE AS $$
DECLARE
  set_by_hand redrive.rate_limit_setting;
BEGIN
  SELECT * INTO set_by_hand FROM redrive.rate_limit_setting s
  WHERE s.name = of_name AND s.key IN ('', of_key) ORDER BY s.key DESC LIMIT 1;
  spacing := coalesce(set_by_hand.spacing_ms, spacing);
  saved := coalesce(set_by_hand.saved_ms, saved);
  late := coalesce(set_by_hand.late_ms, late);
END $$;

-- Takes slots for jobs that were claimed. `requests`: [{ name, key, spacing, saved, late, released, fresh }], one a key:
-- how many jobs were held for it and are let go now, and how many come for the first time. The latter take no slot while
-- others are held: those were there before. Answers each in milliseconds: now, the first slot, how far apart and how
-- late, how many were given (`released` first), the next slot nobody has, and when the first job that got none may expect its turn.
-- INVARIANT: rows are locked in the order of their keys, and the time is asked for when the lock is had, so that two
-- processes never give the same slot nor wait for each other in a circle.
CREATE FUNCTION redrive.acquire_rate(at timestamptz, horizon_ms double precision, window_ms double precision, requests json)
RETURNS TABLE (of_name text, of_key text, now_at double precision, first_at double precision, spacing double precision,
               late double precision, given integer, next_at double precision, turn_at double precision)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  asked   record;
  line    redrive.rate_limit;
  saved   double precision;
  others  boolean;
  refused integer;
  any_set boolean := EXISTS (SELECT FROM redrive.rate_limit_setting);
BEGIN
  FOR asked IN
    SELECT * FROM json_to_recordset(requests) AS r(name text COLLATE "C", key text COLLATE "C",
      spacing double precision, saved double precision, late double precision, released integer, fresh integer)
    ORDER BY r.name, r.key
  LOOP
    of_name := asked.name;
    of_key := asked.key;
    SELECT * INTO line FROM redrive.rate_limit l WHERE l.name = of_name AND l.key = of_key FOR UPDATE;
    IF NOT FOUND THEN
      INSERT INTO redrive.rate_limit AS l (name, key, next_at, spacing_ms, saved_ms, turn_at)
      VALUES (of_name, of_key, coalesce(at, now()) - asked.saved * interval '1 millisecond', asked.spacing, asked.saved,
              coalesce(at, now()))
      ON CONFLICT (name, key) DO UPDATE SET spacing_ms = l.spacing_ms
      RETURNING * INTO line;
    END IF;
    spacing := asked.spacing;
    saved := asked.saved;
    late := asked.late;
    IF any_set THEN
      SELECT p.spacing, p.saved, p.late INTO spacing, saved, late
      FROM redrive.rate_pace(of_name, of_key, spacing, saved, late) p;
    END IF;
    now_at := date_part('epoch', coalesce(at, clock_timestamp())) * 1000;
    first_at := greatest(date_part('epoch', line.next_at) * 1000, now_at - saved);
    given := greatest(0, least(floor((now_at + horizon_ms - first_at) / spacing) + 1, asked.released + asked.fresh));
    others := line.release_at IS NOT NULL AND EXISTS (
      SELECT FROM redrive.job j WHERE j.held_by = redrive.rate_held_by(of_name, of_key) AND NOT j.in_line);
    IF others THEN given := least(given, asked.released); END IF;
    refused := asked.released + asked.fresh - given;
    next_at := first_at + given * spacing;
    turn_at := greatest(next_at, CASE WHEN others THEN date_part('epoch', line.turn_at) * 1000 END, now_at);
    UPDATE redrive.rate_limit l
    SET next_at = to_timestamp(acquire_rate.next_at / 1000), spacing_ms = asked.spacing, saved_ms = asked.saved,
        turn_at = CASE WHEN refused > 0 THEN to_timestamp((acquire_rate.turn_at + refused * spacing) / 1000) ELSE l.turn_at END,
        refused_at = CASE WHEN refused > 0 THEN to_timestamp(now_at / 1000) ELSE l.refused_at END,
        release_at = CASE WHEN refused > 0
          THEN coalesce(l.release_at, to_timestamp(greatest(now_at, acquire_rate.next_at - window_ms) / 1000)) ELSE l.release_at END
    WHERE l.name = of_name AND l.key = of_key;
    RETURN NEXT;
  END LOOP;
END $$;

-- Lets held jobs go, first in line first: as many of each key as can start within `window_ms`, less those that were let
-- go and have not been taken. They keep their place in line. Keys that another process looks at are left to it. A key
-- without held jobs is looked at for a while: one that was just refused may still be on its way to being held.
CREATE FUNCTION redrive.release_rate(at timestamptz, channel text, window_ms double precision, pause_ms double precision,
                                     most_keys integer, most_jobs integer)
RETURNS TABLE (of_queue text, next_in double precision) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moment   timestamptz := coalesce(at, clock_timestamp());
  now_at   double precision := date_part('epoch', moment) * 1000;
  line     redrive.rate_limit;
  spacing  double precision;
  saved    double precision;
  first_at double precision;
  holder   text;
  room     integer;
  taken    integer;
  freed    text[];
  woken    text[] := '{}';
BEGIN
  FOR line IN
    SELECT * FROM redrive.rate_limit l WHERE l.release_at <= moment
    ORDER BY l.release_at LIMIT most_keys FOR UPDATE SKIP LOCKED
  LOOP
    holder := redrive.rate_held_by(line.name, line.key);
    SELECT p.spacing, p.saved INTO spacing, saved
    FROM redrive.rate_pace(line.name, line.key, line.spacing_ms, line.saved_ms, 0) p;
    first_at := greatest(date_part('epoch', line.next_at) * 1000, now_at - saved);
    room := greatest(0, least(floor((now_at + window_ms - first_at) / spacing) + 1, most_jobs));
    taken := (SELECT count(*) FROM (
      SELECT FROM redrive.job j WHERE j.held_by = holder AND j.in_line AND j.state = 'waiting' LIMIT room) let_go);
    freed := '{}';
    IF room > taken THEN
      WITH next AS MATERIALIZED (
        SELECT j.ctid AS place FROM redrive.job j WHERE j.held_by = holder AND NOT j.in_line
        ORDER BY j.line LIMIT room - taken FOR UPDATE SKIP LOCKED
      ), released AS (
        UPDATE redrive.job j SET state = 'waiting', in_line = true, run_at = moment
        WHERE j.ctid = ANY (ARRAY(SELECT place FROM next)) AND NOT j.in_line RETURNING j.queue
      )
      SELECT coalesce(array_agg(queue), '{}') INTO freed FROM released;
      woken := woken || freed;
    END IF;
    UPDATE redrive.rate_limit l
    SET release_at = CASE
      WHEN room = taken + cardinality(freed)
        THEN to_timestamp(greatest(now_at + pause_ms, first_at + room * spacing - window_ms) / 1000)
      WHEN l.refused_at > moment - interval '5 seconds' THEN moment + 2 * pause_ms * interval '1 millisecond' END
    WHERE l.name = line.name AND l.key = line.key;
  END LOOP;
  FOR of_queue IN SELECT DISTINCT unnest(woken) LOOP
    IF channel IS NOT NULL THEN PERFORM pg_notify(channel, of_queue); END IF;
    RETURN NEXT;
  END LOOP;
  of_queue := NULL;
  next_in := (SELECT date_part('epoch', min(l.release_at)) * 1000 FROM redrive.rate_limit l WHERE l.release_at IS NOT NULL) - now_at;
  RETURN NEXT;
END $$;
