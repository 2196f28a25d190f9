// A person cancels a job: one that does not run goes straight to the history; a running one is asked to stop, and its
// worker hears of it with the next renewal of its lease.
import type { JobId } from '../domain/ids.js'
import { type Queryable, sql } from './database.js'
import { KEPT } from './settle/complete.js'
import { addToTally, SHARED_SHARD } from './settle/tally.js'

const CANCEL_IDLE = sql`
  WITH moved AS (
    DELETE FROM redrive.job WHERE id = $1::uuid AND state <> 'active' RETURNING *
  ), kept AS (
    INSERT INTO redrive.finished_job (${KEPT}, state, finished_at, reason)
    SELECT ${KEPT}, 'cancelled', coalesce($2::timestamptz, now()), $4 FROM moved
  ), closed AS (
    UPDATE redrive.dead_letter
    SET status = 'permanently_failed', resolution = 'its redriven job was cancelled',
        resolved_at = coalesce($2::timestamptz, now()), updated_at = coalesce($2::timestamptz, now())
    WHERE id = ANY (ARRAY(SELECT id FROM moved WHERE redrives > 0))
  ), counted AS (${addToTally('moved', { cancelled: 'true' })})
  SELECT id FROM moved`

const ASK_ACTIVE = sql`
  UPDATE redrive.job SET cancel_requested_at = coalesce(cancel_requested_at, $2::timestamptz, now()), cancel_reason = $3
  WHERE id = $1::uuid AND state = 'active' RETURNING id`

/** False: it runs, or has ended. */
export async function cancelIdle(db: Queryable, id: JobId, reason: string): Promise<boolean> {
  return (await db.query(CANCEL_IDLE, [id, db.now(), SHARED_SHARD, reason])).length > 0
}

/** `none`: it is neither waiting nor running. */
export async function cancelJob(db: Queryable, id: JobId, reason: string): Promise<'cancelled' | 'requested' | 'none'> {
  if (await cancelIdle(db, id, reason)) return 'cancelled'
  const asked = await db.query(ASK_ACTIVE, [id, db.now(), reason])
  if (asked.length > 0) return 'requested'
  // Its attempt may have ended between the two.
  return (await cancelIdle(db, id, reason)) ? 'cancelled' : 'none'
}

const CANCEL_ASKED = sql`
  SELECT id, cancel_reason FROM redrive.job
  WHERE cancel_requested_at IS NOT NULL AND state <> 'active' ORDER BY cancel_requested_at LIMIT 100`

/** Jobs whose attempt ended, and that would run again, before their worker heard that they were cancelled. */
export async function cancelAsked(db: Queryable): Promise<number> {
  const rows = await db.query<{ id: JobId; cancel_reason: string | null }>(CANCEL_ASKED)
  for (const row of rows) await cancelJob(db, row.id, row.cancel_reason ?? 'cancelled by an operator')
  return rows.length
}
