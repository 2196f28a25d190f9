// Cancelled on purpose: into the history, with the reason. A dead letter it came back from is closed with it.
import type { Lease } from '../../domain/ids.js'
import type { Settlement } from '../../domain/settlement.js'
import { type Database, sql } from '../database.js'
import { intoHistory } from '../into-history.js'
import { listOf } from '../rows.js'
import { FENCED, KEPT } from './complete.js'
import { addToFailures } from './failures.js'
import { RECORD_ATTEMPTS, RECORD_INPUT, record } from './record.js'
import { addToTally } from './tally.js'

const CANCEL = sql`
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

/** Returns the leases that were refused. */
export async function cancel(db: Database, batch: readonly Settlement[], shard: string): Promise<Set<Lease>> {
  const leases = batch.map(({ lease }) => lease)
  const ids = listOf(batch.map(({ id }) => id))
  const params = [JSON.stringify(batch.map(record)), db.now(), shard, listOf(leases), ids]
  const written = await intoHistory<{ lease: string | number }>(db, CANCEL, params)
  const settled = new Set(written.map(({ lease }) => String(lease)))
  return new Set(leases.filter(lease => !settled.has(lease)))
}
