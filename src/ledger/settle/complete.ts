// Success: the job leaves the live table for the history in one statement, and a dead letter it came back from is
// recovered.
import type { Settlement } from '../../domain/settlement.js'
import { sql } from '../database.js'
import { addToTally } from './tally.js'

/** Columns that a finished job keeps of a live one. */
export const KEPT = `id, created_at, first_claimed_at, claimed_at, session_id, attempt, snoozes, holds, interruptions,
  lost, redrives, max_attempts, priority, queue, name, payload, unique_key, service, tenant, user_id, project`

// INVARIANT: a row is touched only if it still carries the lease of this very claim.
export const FENCED = `
  j.id = ANY (ARRAY(SELECT id FROM input)) AND j.lease = ANY (ARRAY(SELECT lease FROM input)) AND j.state = 'active'`

export const COMPLETE = sql`
  WITH input AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1::json) AS t(id uuid, lease bigint, result text)
  ), moved AS (
    DELETE FROM redrive.job j WHERE ${FENCED} RETURNING j.*
  ), kept AS (
    INSERT INTO redrive.finished_job (${KEPT}, state, finished_at, result)
    SELECT ${KEPT}, 'completed', coalesce($2::timestamptz, now()), result::json
    FROM moved JOIN (SELECT id AS settled, lease AS held, result FROM input) i ON settled = id AND held = lease
  ), recovered AS (
    UPDATE redrive.dead_letter d
    SET status = 'recovered', resolved_at = coalesce($2::timestamptz, now()), updated_at = coalesce($2::timestamptz, now()),
        resolution = 'its job completed'
    WHERE d.id = ANY (ARRAY(SELECT id FROM moved WHERE redrives > 0))
  ), counted AS (${addToTally('moved', { completed: 'true' })})
  SELECT id, lease FROM moved`

export const completeRow = ({ id, lease, decision }: Settlement) => ({
  id,
  lease,
  result: decision.type === 'complete' && decision.result !== null ? JSON.stringify(decision.result) : undefined,
})
