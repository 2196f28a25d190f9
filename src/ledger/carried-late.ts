// A success whose acknowledgement may not have reached the broker: the message comes again, to anyone. What is written
// here tells whoever gets it that the work is done. If it came again already and waits here as lost, it is done as well.
import type { JobId } from '../domain/ids.js'
import type { Json } from '../domain/json.js'
import { type Adoption, adoptionRow, lockCarried } from './carried.js'
import { type Database, sql } from './database.js'
import { intoHistory } from './into-history.js'
import { KEPT } from './settle/complete.js'

export interface LateSuccess {
  readonly job: Adoption
  readonly result: Json
}

// A job that another worker has run since, or runs now, is that worker's.
const COMPLETE = sql`
  WITH input AS MATERIALIZED (
    SELECT t.*, coalesce($3::timestamptz, now()) AS now FROM ROWS FROM (
      json_to_recordset($1::json) AS (id uuid, queue text, name text, service text, max_attempts smallint,
        priority smallint, created_ms double precision, held_ms double precision, tenant text, user_id text, project text,
        result json),
      json_array_elements($2::json)
    ) AS t(id, queue, name, service, max_attempts, priority, created_ms, held_ms, tenant, user_id, project, result, payload)
  ), healed AS (
    DELETE FROM redrive.job j USING input i
    WHERE j.id = i.id AND j.state <> 'active' AND j.attempt <= 1 AND j.redrives = 0
    RETURNING j.*, i.result AS result, i.now AS moment
  ), kept AS (
    INSERT INTO redrive.finished_job (${KEPT}, state, finished_at, result)
    SELECT ${KEPT}, 'completed', moment, CASE WHEN result::text <> 'null' THEN result END FROM healed
    RETURNING id
  ), fresh AS (
    INSERT INTO redrive.finished_job (id, created_at, first_claimed_at, claimed_at, attempt, snoozes, holds, interruptions,
      lost, redrives, max_attempts, priority, queue, name, payload, service, tenant, user_id, project, state, finished_at, result)
    SELECT i.id, coalesce(to_timestamp(i.created_ms / 1000), i.now), i.now - i.held_ms * interval '1 millisecond',
      i.now - i.held_ms * interval '1 millisecond', 1, 0, 0, 0, 0, 0, i.max_attempts, i.priority, i.queue, i.name,
      i.payload, i.service, i.tenant, i.user_id, i.project, 'completed', i.now,
      CASE WHEN i.result::text <> 'null' THEN i.result END
    FROM input i
    WHERE NOT EXISTS (SELECT FROM redrive.job j WHERE j.id = i.id)
      AND NOT EXISTS (SELECT FROM redrive.dead_letter d WHERE d.id = i.id)
      AND NOT EXISTS (SELECT FROM redrive.finished_job f WHERE f.id = i.id)
    RETURNING id
  )
  SELECT id FROM kept UNION ALL SELECT id FROM fresh`

/** Returns the ids that were written; who is missing belongs to someone else now, or has ended. */
export async function completeLate(db: Database, batch: readonly LateSuccess[]): Promise<Set<JobId>> {
  const rows = batch.map(({ job, result }) => ({ ...adoptionRow(job), result }))
  const payloads = `[${batch.map(({ job }) => job.payloadText).join(',')}]`
  const written = await db.transaction(async tx => {
    await lockCarried(
      tx,
      batch.map(({ job }) => job.id),
    )
    return intoHistory<{ id: JobId }>(tx, COMPLETE, [JSON.stringify(rows), payloads, tx.now()])
  })
  return new Set(written.map(({ id }) => id))
}
