// What becomes of the counts of failures: fine for some hours, by the day for a month, then one row for ever; and of
// groups that nobody ever touched, that left nothing behind and did not fail for a season. What a person changed stays.
import { type Database, sql } from './database.js'

const FINE = `interval '3 hours'`
const BY_DAY = `interval '30 days'`
const FORGOTTEN_AFTER = `interval '90 days'`

const since = (age: string) => `coalesce($1::timestamptz, now()) - ${age}`

const TARGET = `CASE WHEN bucket < ${since(BY_DAY)} THEN timestamptz 'epoch'
  WHEN bucket < ${since(FINE)} THEN date_bin(interval '1 day', bucket, timestamptz 'epoch') ELSE bucket END`

// A row that others are folded into is never folded itself by the same statement: its shard is 0 and its bucket stays.
const FOLD = sql`
  WITH old AS MATERIALIZED (
    SELECT ctid AS place FROM redrive.failure_tally t
    WHERE bucket <> ${TARGET} OR (shard <> 0 AND (bucket < ${since(FINE)}
      OR NOT EXISTS (SELECT FROM redrive.session s WHERE s.id = t.shard / 16 AND s.ended_at IS NULL)))
    LIMIT $2::integer FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM redrive.failure_tally WHERE ctid = ANY (ARRAY(SELECT place FROM old)) RETURNING *, ${TARGET} AS target
  ), folded AS (
    INSERT INTO redrive.failure_tally AS t (fingerprint, queue, name, version, bucket, shard, failures, deaths, last_at,
      first_job, sample_job, noticed)
    SELECT fingerprint, queue, name, version, target, 0, sum(failures), sum(deaths), max(last_at),
      (array_agg(first_job ORDER BY bucket, last_at))[1], (array_agg(sample_job ORDER BY last_at DESC))[1], bool_and(noticed)
    FROM gone GROUP BY fingerprint, queue, name, version, target ORDER BY fingerprint, queue, name, version, target
    ON CONFLICT (fingerprint, queue, name, version, bucket, shard) DO UPDATE
    SET failures = t.failures + excluded.failures, deaths = t.deaths + excluded.deaths,
        last_at = greatest(t.last_at, excluded.last_at), sample_job = CASE WHEN excluded.last_at > t.last_at THEN excluded.sample_job ELSE t.sample_job END
  )
  SELECT count(*) AS rows FROM gone`

const FORGET = sql`
  WITH old AS MATERIALIZED (
    SELECT g.fingerprint FROM redrive.failure_group g
    WHERE g.version = 1 AND g.merged_into IS NULL AND g.last_seen < ${since(FORGOTTEN_AFTER)}
      AND NOT EXISTS (SELECT FROM redrive.dead_letter d WHERE d.fingerprint = g.fingerprint)
      AND NOT EXISTS (SELECT FROM redrive.job j WHERE j.fingerprint = g.fingerprint AND NOT j.in_line)
    ORDER BY g.fingerprint LIMIT $2::integer FOR UPDATE SKIP LOCKED
  ), forgotten AS (
    DELETE FROM redrive.failure_group WHERE fingerprint = ANY (ARRAY(SELECT fingerprint FROM old)) RETURNING fingerprint
  ), uncounted AS (
    DELETE FROM redrive.failure_tally WHERE fingerprint = ANY (ARRAY(SELECT fingerprint FROM old))
  ), noted AS (
    INSERT INTO redrive.audit (at, actor, action, target_type, target, after)
    SELECT coalesce($1::timestamptz, now()), 'retention', 'forget', 'group', 'untouched', json_build_object('removed', count(*))
    FROM forgotten HAVING count(*) > 0
  )
  SELECT count(*) AS rows FROM forgotten`

/** `between`: called after each batch, for whoever must show that it is alive. */
export async function tidyGroups(db: Database, batch: number, between: () => Promise<void>): Promise<void> {
  for (const statement of [FOLD, FORGET]) {
    for (;;) {
      const [done] = await db.query<{ rows: string | number }>(statement, [db.now(), batch])
      if (Number(done?.rows) < batch) break
      await between()
    }
  }
}
