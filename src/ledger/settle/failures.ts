// Adds a batch to the counts of what failed, by cause, in the same statement that records the attempts: one row for each
// cause, queue and job name, however many failed. `$2` is now, `$3` the settling lane's own shard. The functions `bury` and
// `defer` have it in them (0014_failed_batches.sql).

/** Fine for now, coarse later: recovery folds old ones (group-retention.ts). */
export const BUCKET = `interval '5 minutes'`

/** What `logged` has to return for `addToFailures`. */
export const FAILURE_RETURNED = 'job_id, queue, name, session_id, decision, fingerprint COLLATE "C" AS fingerprint'

/**
 * `source`: a CTE with FAILURE_RETURNED. In the order of the key: lanes that share a shard never wait for each other in a
 * circle. The version is the session's, looked up once for each.
 */
export const addToFailures = (source: string, counts = { failures: '1', deaths: "(decision = 'bury')::integer" }) => `
  INSERT INTO redrive.failure_tally AS t (fingerprint, queue, name, version, bucket, shard, failures, deaths, last_at,
    first_job, sample_job)
  SELECT fingerprint, queue, name, version, date_bin(${BUCKET}, coalesce($2::timestamptz, now()), timestamptz 'epoch'),
    $3::bigint, sum(failures), sum(deaths), coalesce($2::timestamptz, now()), (array_agg(first_job))[1], (array_agg(sample_job))[1]
  FROM (
    SELECT fingerprint, queue, name, sum(${counts.failures}) AS failures, sum(${counts.deaths}) AS deaths,
      (array_agg(job_id))[1] AS first_job, (array_agg(job_id))[count(*)::integer] AS sample_job,
      coalesce((SELECT s.version FROM redrive.session s WHERE s.id = session_id), '') AS version
    FROM ${source} WHERE fingerprint IS NOT NULL GROUP BY fingerprint, queue, name, session_id
  ) by_session
  GROUP BY fingerprint, queue, name, version ORDER BY fingerprint, queue, name, version
  ON CONFLICT (fingerprint, queue, name, version, bucket, shard) DO UPDATE
  SET failures = t.failures + excluded.failures, deaths = t.deaths + excluded.deaths,
      last_at = greatest(t.last_at, excluded.last_at), sample_job = excluded.sample_job`
