// Death: the job's row and its dead letter change places in one statement (invariant 1). A dead letter that was being
// redriven is the same one again: reopened with the new failure, its notes and history kept.
import type { Failure } from '../../domain/failure.js'
import type { Settlement } from '../../domain/settlement.js'
import { sql } from '../database.js'
import { FENCED } from './complete.js'
import { RECORD_ATTEMPTS, RECORD_INPUT, record } from './record.js'
import { addToTally } from './tally.js'

/** Needs CTEs `moved` (the job as it was) and `input` (the record); `$2` is now. */
export const BURY_MOVED = `
  INSERT INTO redrive.dead_letter AS d (id, died_at, updated_at, job_created_at, total_attempts, max_attempts, lost,
    redrives, job_priority, http_status, outcome, kind, queue, name, payload, reason, because, error_type, error_code,
    message, stack, causes, fingerprint, service, unique_key, tenant, user_id, project)
  SELECT m.id, coalesce($2::timestamptz, now()), coalesce($2::timestamptz, now()), m.created_at, m.attempt,
    m.max_attempts, m.lost + (i.outcome = 'lost')::integer, m.redrives, m.priority, i.http_status, i.outcome, i.kind,
    m.queue, m.name, m.payload, i.reason, i.because, i.error_type, i.error_code, i.message, i.stack, i.causes::json,
    i.fingerprint, coalesce(i.service, m.service), m.unique_key, m.tenant, m.user_id, m.project
  FROM moved m JOIN input i ON i.id = m.id AND i.lease IS NOT DISTINCT FROM m.lease
  ON CONFLICT (id) DO UPDATE
  SET status = 'pending', resolved_at = NULL, resolution = NULL, seq = excluded.seq, died_at = excluded.died_at,
    updated_at = excluded.updated_at, total_attempts = d.total_attempts + excluded.total_attempts,
    max_attempts = excluded.max_attempts, lost = d.lost + excluded.lost, redrives = excluded.redrives,
    http_status = excluded.http_status, outcome = excluded.outcome, kind = excluded.kind, payload = excluded.payload,
    reason = excluded.reason, because = excluded.because, error_type = excluded.error_type,
    error_code = excluded.error_code, message = excluded.message, stack = excluded.stack, causes = excluded.causes,
    fingerprint = excluded.fingerprint, service = excluded.service`

export const BURY = sql`
  WITH input AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1::json) AS t(${RECORD_INPUT})
  ), moved AS (
    DELETE FROM redrive.job j WHERE ${FENCED} RETURNING j.*
  ), logged AS (${RECORD_ATTEMPTS}), buried AS (${BURY_MOVED}),
  counted AS (${addToTally('moved', { failed: 'true', dead: 'true' })})
  SELECT lease FROM moved`

/** Every dead letter has a failure; the types allow an outcome without one, so the last resort is said in words. */
const NO_FAILURE: Pick<Failure, 'kind' | 'because' | 'type' | 'fingerprint'> = {
  kind: 'permanent',
  because: 'buried without an error',
  type: 'Buried',
  fingerprint: 'v1:buried',
}

export function buryRow(settlement: Settlement) {
  const row = record(settlement)
  if (row.kind !== undefined) return row
  const { kind, because, type, fingerprint } = NO_FAILURE
  return { ...row, kind, because, error_type: type, fingerprint, message: row.reason }
}
