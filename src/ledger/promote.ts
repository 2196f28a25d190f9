// Makes due jobs claimable: only these are in the claim index, so a million that wait for their time cost nothing.
import { type Database, sql } from './database.js'
import { millis } from './rows.js'

// The limit is a subquery so that the planner does not know it: it then reads the index in order and stops, instead of
// sorting all that is due for each batch (pitfalls 19 and 24). Places in line are given in that order; who is held for a
// rate limit has a place already, and was not let go when expected. The rows are then taken by where they lie; asked again
// for `NOT in_line`, the planner might go through that whole index instead.
const PROMOTE = sql`
  WITH clock AS MATERIALIZED (SELECT coalesce($2::timestamptz, now()) AS now),
  due AS MATERIALIZED (
    SELECT ctid AS place FROM redrive.job
    WHERE NOT in_line AND run_at <= coalesce($2::timestamptz, now())
    ORDER BY run_at, line LIMIT (SELECT $1::integer) FOR UPDATE SKIP LOCKED
  ), numbered AS MATERIALIZED (
    SELECT place, nextval('redrive.job_seq') AS number FROM unnest(ARRAY(SELECT place FROM due)) AS place
  ), promoted AS (
    UPDATE redrive.job j
    SET state = 'waiting', in_line = true, held_by = NULL,
        line = CASE WHEN j.held_by IS NULL THEN redrive.line_of(j.priority, numbered.number) ELSE j.line END
    FROM numbered
    WHERE j.ctid = numbered.place AND j.state IN ('scheduled', 'retrying', 'held')
    RETURNING j.queue
  ), by_queue AS (
    SELECT queue, count(*) AS jobs FROM promoted GROUP BY queue
  )
  SELECT queue, jobs, NULL::double precision AS next_due_in, CASE WHEN $3::text IS NOT NULL THEN pg_notify($3, queue) END AS woken FROM by_queue
  UNION ALL
  SELECT NULL, 0, ${millis('j.run_at')} - ${millis('clock.now')}, NULL
  FROM clock CROSS JOIN LATERAL (
    SELECT run_at FROM redrive.job WHERE NOT in_line AND run_at > clock.now
    ORDER BY run_at LIMIT 1
  ) j`

export interface Promotion {
  readonly promoted: number
  readonly queues: readonly string[]
  /** How long until the next delayed job is due; undefined when there is none. */
  readonly nextDueInMs: number | undefined
}

export async function promote(db: Database, limit: number, channel: string | null): Promise<Promotion> {
  const rows = await db.query<{ queue: string | null; jobs: string | number; next_due_in: number | null }>(PROMOTE, [
    limit,
    db.now(),
    channel,
  ])
  let promoted = 0
  let nextDueInMs: number | undefined
  const queues: string[] = []
  for (const row of rows) {
    promoted += Number(row.jobs)
    if (row.queue !== null) queues.push(row.queue)
    if (row.next_due_in !== null) nextDueInMs = row.next_due_in
  }
  return { promoted, queues, nextDueInMs }
}
