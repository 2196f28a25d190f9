// Cancelled on purpose: into the history, with the reason. A dead letter it came back from is closed with it.
import { sql } from '../database.js'
import { FENCED, KEPT } from './complete.js'
import { addToFailures } from './failures.js'
import { RECORD_ATTEMPTS, RECORD_INPUT } from './record.js'
import { addToTally } from './tally.js'

export const CANCEL = sql`
  WITH input AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1::json) AS t(${RECORD_INPUT})
  ), moved AS (
    DELETE FROM redrive.job j WHERE ${FENCED} RETURNING j.*
  ), logged AS (${RECORD_ATTEMPTS}), kept AS (
    INSERT INTO redrive.finished_job (${KEPT}, state, finished_at, reason)
    SELECT ${KEPT}, 'cancelled', coalesce($2::timestamptz, now()), why
    FROM moved JOIN (SELECT id AS settled, lease AS held, reason AS why FROM input) i ON settled = id AND held = lease
  ), closed AS (
    UPDATE redrive.dead_letter d
    SET status = 'permanently_failed', resolved_at = coalesce($2::timestamptz, now()),
        updated_at = coalesce($2::timestamptz, now()), resolution = 'its redriven job was cancelled'
    WHERE d.id = ANY (ARRAY(SELECT id FROM moved WHERE redrives > 0))
  ), counted AS (${addToTally('moved', { cancelled: 'true' })}), caused AS (${addToFailures('logged')})
  SELECT lease FROM moved`
