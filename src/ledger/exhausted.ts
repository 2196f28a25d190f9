// Jobs that wait for a retry they may not have any more, because a policy was lowered in the meantime. They are dead
// already; recovery only has to say so. They are not running, so the guard is their state and attempt, not a lease.
import type { Failure } from '../domain/failure.js'
import type { JobId } from '../domain/ids.js'
import type { Job } from '../domain/job.js'
import type { Settlement } from '../domain/settlement.js'
import { type Database, sql } from './database.js'
import { millis, optional } from './rows.js'
import { BURY_MOVED, buryRow } from './settle/bury.js'
import { RECORD_INPUT } from './settle/record.js'
import { addToTally, SHARED_SHARD } from './settle/tally.js'

const SUSPECTS = sql`
  SELECT j.id, j.queue, j.name, j.priority, j.attempt, j.snoozes, j.holds, j.interruptions, j.lost, j.redrives,
    j.max_attempts, j.service, ${millis('j.created_at')} AS created_at, ${millis('j.first_claimed_at')} AS first_claimed_at,
    a.kind, a.because, a.error_type, a.error_code, a.message, a.stack, a.fingerprint
  FROM redrive.job j
  JOIN redrive.queue q ON q.name = j.queue AND (q.policy ->> 'attempts')::integer <= j.attempt
  CROSS JOIN LATERAL (
    SELECT * FROM redrive.attempt a WHERE a.job_id = j.id AND a.kind IS NOT NULL ORDER BY a.lease DESC LIMIT 1
  ) a
  WHERE j.state = 'retrying' ORDER BY j.run_at LIMIT $1::integer`

interface Row {
  id: JobId
  queue: string
  name: string
  priority: number
  attempt: number
  snoozes: number
  holds: number
  interruptions: number
  lost: number
  redrives: number
  max_attempts: number | null
  service: string | null
  created_at: number
  first_claimed_at: number
  kind: Failure['kind']
  because: string
  error_type: string
  error_code: string | null
  message: string
  stack: string | null
  fingerprint: string
}

export interface Exhausted {
  readonly job: Job
  readonly lastFailure: Failure
}

/** Retrying jobs of queues whose policy allows no further attempt, with the failure they are waiting to retry. */
export async function exhausted(db: Database, limit: number): Promise<Exhausted[]> {
  return (await db.query<Row>(SUSPECTS, [limit])).map(row => ({
    job: {
      id: row.id,
      queue: row.queue,
      name: row.name,
      priority: row.priority,
      attempt: row.attempt,
      snoozes: row.snoozes,
      holds: row.holds,
      interruptions: row.interruptions,
      lost: row.lost,
      redrives: row.redrives,
      createdAt: row.created_at,
      firstClaimedAt: row.first_claimed_at,
      ...optional('maxAttempts', row.max_attempts),
      ...optional('service', row.service),
    },
    lastFailure: {
      kind: row.kind,
      because: row.because,
      type: row.error_type,
      message: row.message,
      causes: [],
      fingerprint: row.fingerprint,
      ...optional('code', row.error_code),
      ...optional('stack', row.stack),
      ...optional('service', row.service),
    },
  }))
}

const BURY_EXHAUSTED = sql`
  WITH input AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1::json) AS t(${RECORD_INPUT}, attempt integer)
  ), moved AS (
    DELETE FROM redrive.job j USING input i
    WHERE j.id = i.id AND j.state = 'retrying' AND j.attempt = i.attempt RETURNING j.*
  ), buried AS (${BURY_MOVED}),
  counted AS (${addToTally('moved', { dead: 'true' })})
  SELECT id FROM moved`

/** Buries them, as long as they still wait for the same retry; returns which. The attempt itself is on record. */
export async function buryExhausted(
  db: Database,
  deaths: readonly (Omit<Settlement, 'lease'> & { attempt: number })[],
): Promise<JobId[]> {
  const rows = deaths.map(({ attempt, ...death }) => {
    const { lease: _, ...row } = buryRow({ ...death, lease: '' as Settlement['lease'] })
    return { ...row, attempt }
  })
  const buried = await db.query<{ id: JobId }>(BURY_EXHAUSTED, [JSON.stringify(rows), db.now(), SHARED_SHARD])
  return buried.map(({ id }) => id)
}
