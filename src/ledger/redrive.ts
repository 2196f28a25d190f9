// Sends dead letters back to run, one statement for one or thousands. INVARIANT: the dead letter stays, as
// `redriving`, until its job has ended; one whose unique key a live job holds is left open and reported (pitfall 4); one
// whose job was sent back and then cancelled has ended for good (its redrives are not its recovery attempts).
import type { JobId } from '../domain/ids.js'
import { type Queryable, sql } from './database.js'
import { type DeadLetterFilter, filterParams, MATCHES } from './dead-letter.js'

const REDRIVE = sql`
  WITH asked AS MATERIALIZED (
    SELECT * FROM redrive.dead_letter
    WHERE id = ANY (ARRAY(SELECT value::uuid FROM json_array_elements_text($1::json)))
      AND status IN ('pending', 'permanently_failed') AND redrives = recovery_attempts
    FOR UPDATE
  ), revived AS (
    INSERT INTO redrive.job (id, state, queue, name, priority, payload, run_at, created_at, max_attempts, redrives,
                             unique_key, service, tenant, user_id, project)
    SELECT id, 'waiting', queue, name, job_priority, payload, coalesce($2::timestamptz, now()), job_created_at,
           max_attempts, redrives + 1, unique_key, service, tenant, user_id, project
    FROM asked ORDER BY seq
    ON CONFLICT DO NOTHING
    RETURNING id, queue
  ), marked AS (
    UPDATE redrive.dead_letter
    SET status = 'redriving', recovery_attempts = recovery_attempts + 1, redriven_at = coalesce($2::timestamptz, now()),
        updated_at = coalesce($2::timestamptz, now()), resolved_at = NULL, resolution = NULL
    WHERE id = ANY (ARRAY(SELECT id FROM revived))
  )
  SELECT asked.id, revived.id IS NOT NULL AS redriven, asked.queue, asked.unique_key,
         (SELECT count(pg_notify($3, woken.queue)) FROM (SELECT DISTINCT queue FROM revived) woken WHERE $3::text IS NOT NULL)
  FROM asked LEFT JOIN revived ON revived.id = asked.id`

export interface RedriveResult {
  readonly redriven: readonly JobId[]
  /** Left as they are: another live job holds their unique key. */
  readonly conflicts: readonly JobId[]
}

/** Ids that are not open dead letters are in neither list. */
export async function redrive(db: Queryable, ids: readonly JobId[], channel: string | null): Promise<RedriveResult> {
  const { redriven, conflicts } = await redriveMany(db, ids, channel)
  return { redriven, conflicts }
}

/** The same, and which queues have work now. */
export async function redriveMany(
  db: Queryable,
  ids: readonly JobId[],
  channel: string | null,
): Promise<RedriveResult & { readonly queues: ReadonlySet<string> }> {
  type Row = { id: JobId; redriven: boolean; queue: string }
  const rows = await db.query<Row>(REDRIVE, [JSON.stringify(ids), db.now(), channel])
  const redriven = rows.filter(row => row.redriven)
  return {
    redriven: redriven.map(row => row.id),
    conflicts: rows.filter(row => !row.redriven).map(row => row.id),
    queues: new Set(redriven.map(row => row.queue)),
  }
}

const FREEZE = sql`
  SELECT id FROM redrive.dead_letter
  WHERE ${MATCHES} AND ($12::double precision IS NULL
    OR died_at <= coalesce($13::timestamptz, now()) - $12::double precision * interval '1 millisecond')
  ORDER BY seq LIMIT $11::integer`

/** The ids that match now, oldest first: a set that later arrivals do not join (pitfall 7). */
export async function freeze(
  db: Queryable,
  filter: DeadLetterFilter & { diedBeforeMs?: number },
  limit: number,
): Promise<JobId[]> {
  const params = [...filterParams(filter), limit, filter.diedBeforeMs ?? null, db.now()]
  const rows = await db.query<{ id: JobId }>(FREEZE, params)
  return rows.map(row => row.id)
}
