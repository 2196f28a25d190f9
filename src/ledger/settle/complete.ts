// Success: the job leaves the live table for the history in one statement, and a dead letter it came back from is
// recovered.
import type { Settlement } from '../../domain/settlement.js'
import { sql } from '../database.js'
import { addToTally } from './tally.js'

/** Columns that a finished job keeps of a live one. */
export const KEPT = `id, created_at, first_claimed_at, claimed_at, session_id, attempt, snoozes, holds, interruptions,
  lost, redrives, max_attempts, priority, queue, name, payload, unique_key, service, tenant, user_id, project`

// INVARIANT: a row is touched only if it still carries the lease of this very claim. `$4` are the leases: each is given
// once, so it names its claim, and its index holds running jobs only. `$5` are the jobs they are said to belong to.
export const FENCED = `j.lease = ANY ($4::bigint[]) AND j.state = 'active' AND j.id = ANY ($5::uuid[])`

// Only results travel as rows: most jobs return none.
export const COMPLETE = sql`
  WITH moved AS (
    DELETE FROM redrive.job j WHERE ${FENCED} RETURNING j.*
  ), kept AS (
    INSERT INTO redrive.finished_job (${KEPT}, state, finished_at, result)
    SELECT ${KEPT}, 'completed', coalesce($2::timestamptz, now()), result::json
    FROM moved LEFT JOIN (
      SELECT settled, result FROM json_to_recordset($1::json) AS t(settled bigint, result text)
    ) results ON settled = lease
  ), recovered AS (
    UPDATE redrive.dead_letter d
    SET status = 'recovered', resolved_at = coalesce($2::timestamptz, now()), updated_at = coalesce($2::timestamptz, now()),
        resolution = 'its job completed'
    WHERE d.id = ANY (ARRAY(SELECT id FROM moved WHERE redrives > 0))
  ), counted AS (${addToTally('moved', { completed: 'true' })})
  SELECT lease FROM moved`

export const resultRows = (batch: readonly Settlement[]) =>
  batch.flatMap(({ lease, decision }) =>
    decision.type === 'complete' && decision.result !== null
      ? [{ settled: lease, result: JSON.stringify(decision.result) }]
      : [],
  )
