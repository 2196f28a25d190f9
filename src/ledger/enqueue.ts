// Puts jobs in line: one statement for any number, in the caller's own transaction if it has one. Wakes the workers
// of a lane only when nothing was waiting in it (pitfall 10).
import { RedriveError } from '../domain/errors.js'
import type { JobId } from '../domain/ids.js'
import type { Enqueued, NewJob } from '../domain/job.js'
import { type Queryable, sql } from './database.js'

const INPUT = `
  input AS MATERIALIZED (
    SELECT t.*, coalesce(t.run_at, clock.now + t.delay_ms * interval '1 millisecond', clock.now) AS due, clock.now
    FROM (SELECT coalesce($2::timestamptz, now()) AS now) clock,
         json_to_recordset($1::json) AS t(
           id uuid, queue text COLLATE "C", name text COLLATE "C", priority smallint, payload text,
           delay_ms double precision, run_at timestamptz, max_attempts smallint, unique_key text COLLATE "C",
           service text, tenant text, user_id text, project text)
  )`

const INSERT = `
  INSERT INTO redrive.job (id, state, queue, name, priority, payload, run_at, created_at, max_attempts, unique_key,
                           service, tenant, user_id, project)
  SELECT id, (CASE WHEN due > now THEN 'scheduled' ELSE 'waiting' END)::redrive.job_state, queue, name, priority,
         payload::json, greatest(due, now), now, max_attempts, unique_key, service, tenant, user_id, project
  FROM input`

const WAKE = `
  SELECT count(pg_notify($3, lane.queue)) FROM (SELECT DISTINCT queue, name FROM input WHERE due <= now) lane
  WHERE $3::text IS NOT NULL
    AND NOT EXISTS (SELECT FROM redrive.job j WHERE j.queue = lane.queue AND j.name = lane.name AND j.state = 'waiting')`

const ENQUEUE = sql`WITH ${INPUT}, added AS (${INSERT}) ${WAKE}`

const ENQUEUE_UNIQUE = sql`
  WITH ${INPUT},
  added AS (${INSERT} ON CONFLICT (queue, unique_key) WHERE unique_key IS NOT NULL DO NOTHING RETURNING id)
  SELECT input.id AS asked, coalesce(added.id, live.id) AS id, added.id IS NULL AS deduplicated, (${WAKE}) AS woken
  FROM input
  LEFT JOIN added ON added.id = input.id
  LEFT JOIN redrive.job live ON added.id IS NULL AND live.queue = input.queue AND live.unique_key = input.unique_key`

/** A key that a concurrent transaction takes or frees is invisible to one statement and visible to the next. */
const UNIQUE_TRIES = 5

const row = (job: NewJob) => ({
  id: job.id,
  queue: job.queue,
  name: job.name,
  priority: job.priority,
  payload: job.payloadText,
  delay_ms: job.delayMs,
  run_at: job.runAt,
  max_attempts: job.maxAttempts,
  unique_key: job.uniqueKey,
  service: job.service,
  tenant: job.tenant,
  user_id: job.user,
  project: job.project,
})

/** `channel`: where to NOTIFY; null where nobody listens. */
export async function enqueue(
  db: Queryable,
  jobs: readonly NewJob[],
  channel: string | null,
): Promise<Map<JobId, Enqueued>> {
  const results = new Map<JobId, Enqueued>()
  const plain = jobs.filter(job => job.uniqueKey === undefined)
  if (plain.length > 0) {
    await db.query(ENQUEUE, [JSON.stringify(plain.map(row)), db.now(), channel])
    for (const job of plain) results.set(job.id, { id: job.id, deduplicated: false })
  }
  let keyed = jobs.filter(job => job.uniqueKey !== undefined)
  for (let tries = 0; keyed.length > 0; tries += 1) {
    if (tries === UNIQUE_TRIES) {
      throw new RedriveError(
        'UNIQUE_KEY_CONTENDED',
        `The unique key "${keyed[0]?.uniqueKey}" is taken and freed too fast`,
      )
    }
    const rows = await db.query<{ asked: JobId; id: JobId | null; deduplicated: boolean }>(ENQUEUE_UNIQUE, [
      JSON.stringify(keyed.map(row)),
      db.now(),
      channel,
    ])
    for (const { asked, id, deduplicated } of rows) if (id) results.set(asked, { id, deduplicated })
    keyed = keyed.filter(job => !results.has(job.id))
  }
  return results
}
