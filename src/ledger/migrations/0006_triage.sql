-- What to do about dead letters without asking a person each time. How often a rule did something about a letter is on the
-- letter (`triaged`, by the rule's id), so it outlives redrives.
CREATE TABLE redrive.triage_rule (
  id             bigint           GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name           text COLLATE "C" NOT NULL UNIQUE,
  enabled        boolean          NOT NULL,
  position       integer          NOT NULL,
  match          json             NOT NULL,
  action         json             NOT NULL,
  max_per_run    integer          NOT NULL,
  max_per_letter smallint         NOT NULL,
  version        integer          NOT NULL DEFAULT 1,
  created_at     timestamptz      NOT NULL,
  created_by     text             NOT NULL,
  updated_at     timestamptz      NOT NULL,
  updated_by     text             NOT NULL
);

-- How far the rules have looked, in the order of death. Set back when a rule changes. What has to be looked at again
-- later says so itself (dead_letter.triage_at).
CREATE TABLE redrive.triage_progress (
  one     boolean PRIMARY KEY DEFAULT true,
  died_at timestamptz,
  seq     bigint,
  CONSTRAINT triage_progress_one CHECK (one)
);
INSERT INTO redrive.triage_progress (one) VALUES (true);
