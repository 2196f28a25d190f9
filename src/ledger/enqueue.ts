// Puts jobs in line: one statement for any number, in the caller's own transaction if it has one. Wakes the workers
// of a lane only when nothing was waiting in it (pitfall 10).
import { RedriveError } from '../domain/errors.js'
import type { JobId } from '../domain/ids.js'
import type { Enqueued, NewJob } from '../domain/job.js'
import { type Param, type Queryable, sql } from './database.js'

const INPUT = `
  input AS MATERIALIZED (
    SELECT t.*, coalesce(t.run_at, clock.now + t.delay_ms * interval '1 millisecond', clock.now) AS due, clock.now
    FROM (SELECT coalesce($2::timestamptz, now()) AS now) clock,
         json_to_recordset($1::json) AS t(id uuid, priority smallint, payload text, delay_ms double precision,
           run_at timestamptz, unique_key text COLLATE "C", tenant text, user_id text, project text)
  )`

const INSERT = `
  INSERT INTO redrive.job (id, state, queue, name, service, max_attempts, priority, payload, run_at, created_at,
                           unique_key, tenant, user_id, project)
  SELECT id, CASE WHEN due > now THEN 'scheduled'::redrive.job_state ELSE 'waiting'::redrive.job_state END,
         $4, $5, $6, $7::smallint, priority, payload::json, greatest(due, now), now, unique_key, tenant, user_id, project
  FROM input`

// A scalar subquery, and in the order of its index: as EXISTS it may become a join over the whole table (pitfall 24).
const WAKE = `
  SELECT CASE WHEN $3::text IS NOT NULL AND (SELECT bool_or(due <= now) FROM input)
               AND (SELECT true FROM redrive.job j WHERE j.queue = $4 AND j.name = $5 AND j.state = 'waiting'
                    ORDER BY j.priority DESC, j.seq LIMIT 1) IS NULL
         THEN pg_notify($3, $4) END AS woken`

const ENQUEUE = sql`WITH ${INPUT}, added AS (${INSERT}) ${WAKE}`

const ENQUEUE_UNIQUE = sql`
  WITH ${INPUT},
  added AS (${INSERT} ON CONFLICT (queue, unique_key) WHERE unique_key IS NOT NULL DO NOTHING RETURNING id)
  SELECT input.id AS asked, added.id IS NULL AS deduplicated, (${WAKE}) AS woken,
         coalesce(added.id, (SELECT live.id FROM redrive.job live
                             WHERE live.queue = $4 AND live.unique_key = input.unique_key LIMIT 1)) AS id
  FROM input LEFT JOIN added ON added.id = input.id`

/** A key that a concurrent transaction takes or frees is invisible to one statement and visible to the next. */
const UNIQUE_TRIES = 5

const row = (job: NewJob) => ({
  id: job.id,
  priority: job.priority,
  payload: job.payloadText,
  delay_ms: job.delayMs,
  run_at: job.runAt,
  unique_key: job.uniqueKey,
  tenant: job.tenant,
  user_id: job.user,
  project: job.project,
})

/** Jobs of one lane, all or none. `channel`: where to NOTIFY; null where nobody listens. */
export async function enqueue(db: Queryable, jobs: readonly NewJob[], channel: string | null): Promise<Enqueued[]> {
  const [first] = jobs
  if (!first) return []
  const shared = [channel, first.queue, first.name, first.service ?? null, first.maxAttempts ?? null] as const
  if (jobs.some(job => job.uniqueKey !== undefined)) return enqueueUnique(db, jobs, shared)
  await db.query(ENQUEUE, [JSON.stringify(jobs.map(row)), db.now(), ...shared])
  return jobs.map(({ id }) => ({ id, deduplicated: false }))
}

async function enqueueUnique(db: Queryable, jobs: readonly NewJob[], shared: readonly Param[]): Promise<Enqueued[]> {
  const results = new Map<JobId, Enqueued>()
  let left = jobs
  for (let tries = 0; left.length > 0; tries += 1) {
    if (tries === UNIQUE_TRIES) {
      throw new RedriveError(
        'UNIQUE_KEY_CONTENDED',
        `The unique key "${left[0]?.uniqueKey}" is taken and freed too fast`,
      )
    }
    const params = [JSON.stringify(left.map(row)), db.now(), ...shared]
    const rows = await db.query<{ asked: JobId; id: JobId | null; deduplicated: boolean }>(ENQUEUE_UNIQUE, params)
    for (const { asked, id, deduplicated } of rows) if (id) results.set(asked, { id, deduplicated })
    left = left.filter(job => !results.has(job.id))
  }
  return jobs.map(({ id }) => results.get(id) as Enqueued)
}
