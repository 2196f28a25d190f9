// Jobs that wait for a retry they may not have any more, because a policy was lowered in the meantime. They are dead
// already; recovery only has to say so. They are not running, so the guard is their state and attempt, not a lease.
import type { Failure } from '../domain/failure.js'
import type { JobId } from '../domain/ids.js'
import type { Job } from '../domain/job.js'
import type { Settlement } from '../domain/settlement.js'
import { type Database, sql } from './database.js'
import { millis, optional } from './rows.js'
import { BURY_MOVED, buryRow, DIED_OF } from './settle/bury.js'
import { addToFailures } from './settle/failures.js'
import { RECORD_INPUT } from './settle/record.js'
import { addToTally, SHARED_SHARD } from './settle/tally.js'

// In the order of becoming due, from where the look before ended. What failed is read without its text: few are buried.
const LOOK = sql`
  SELECT j.id, j.queue, j.name, j.priority, j.attempt, j.snoozes, j.holds, j.interruptions, j.lost, j.redrives,
    j.max_attempts, j.service, j.tenant, j.user_id, j.project, j.line, j.run_at::text AS run_at,
    ${millis('j.created_at')} AS created_at, ${millis('j.first_claimed_at')} AS first_claimed_at,
    j.state = 'retrying' AND (j.queue IN (SELECT json_array_elements_text($2::json))
      OR j.name IN (SELECT json_array_elements_text($3::json))) AS suspect, a.kind, a.because, a.retry_after_ms
  FROM redrive.job j
  LEFT JOIN LATERAL (
    SELECT a.kind, a.because, a.retry_after_ms FROM redrive.attempt a WHERE a.job_id = j.id AND a.kind IS NOT NULL
    ORDER BY a.lease DESC LIMIT 1
  ) a ON j.state = 'retrying'
  WHERE NOT j.in_line AND (j.run_at, j.line) > ($4::timestamptz, $5::bigint)
  ORDER BY j.run_at, j.line LIMIT $1::integer`

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
  tenant: string | null
  user_id: string | null
  project: string | null
  line: string | number
  run_at: string
  created_at: number
  first_claimed_at: number
  suspect: boolean
  kind: Failure['kind'] | null
  because: string | null
  retry_after_ms: string | number | null
}

export interface Suspect {
  readonly job: Job
  /** What it waits to retry, as far as a decision needs it. */
  readonly failure: Pick<Failure, 'kind' | 'because' | 'retryAfterMs'>
}

export interface Look {
  readonly suspects: readonly Suspect[]
  /** Where the next look begins; undefined: all were looked at. */
  readonly next: LookFrom | undefined
}

export interface LookFrom {
  readonly runAt: string
  readonly line: string
}

const FROM_THE_START: LookFrom = { runAt: '-infinity', line: '0' }

/** Of the next `limit` jobs that wait for a time: those that wait for a retry, of these queues or job names. */
export async function lookForExhausted(
  db: Database,
  of: { readonly queues: readonly string[]; readonly jobs: readonly string[] },
  limit: number,
  from: LookFrom = FROM_THE_START,
): Promise<Look> {
  const params = [limit, JSON.stringify(of.queues), JSON.stringify(of.jobs), from.runAt, from.line]
  const rows = await db.query<Row>(LOOK, params)
  const last = rows.at(-1)
  return {
    suspects: rows.filter(row => row.suspect && row.kind !== null).map(toSuspect),
    next: last && rows.length === limit ? { runAt: last.run_at, line: String(last.line) } : undefined,
  }
}

const toSuspect = (row: Row): Suspect => ({
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
    ...optional('tenant', row.tenant),
    ...optional('user', row.user_id),
    ...optional('project', row.project),
  },
  failure: {
    kind: row.kind as Failure['kind'],
    because: row.because ?? 'unknown',
    ...optional('retryAfterMs', row.retry_after_ms === null ? null : Number(row.retry_after_ms)),
  },
})

const LAST_FAILURES = sql`
  SELECT a.job_id, a.kind, a.because, a.error_type, a.error_code, a.message, a.stack, a.fingerprint, a.service,
    a.http_status
  FROM json_array_elements_text($1::json) AS asked(id) CROSS JOIN LATERAL (
    SELECT * FROM redrive.attempt a WHERE a.job_id = asked.id::uuid AND a.kind IS NOT NULL ORDER BY a.lease DESC LIMIT 1
  ) a`

/** The failures that these jobs wait to retry. */
export async function lastFailures(db: Database, ids: readonly JobId[]): Promise<Map<JobId, Failure>> {
  const rows = await db.query<Record<string, string | null> & { http_status: number | null }>(LAST_FAILURES, [
    JSON.stringify(ids),
  ])
  return new Map(
    rows.map(row => [
      row.job_id as JobId,
      {
        kind: row.kind as Failure['kind'],
        because: row.because ?? 'unknown',
        type: row.error_type ?? 'unknown',
        message: row.message ?? '',
        causes: [],
        fingerprint: row.fingerprint ?? '',
        ...optional('code', row.error_code),
        ...optional('stack', row.stack),
        ...optional('service', row.service),
        ...optional('httpStatus', row.http_status),
      },
    ]),
  )
}

const BURY_EXHAUSTED = sql`
  WITH input AS MATERIALIZED (
    SELECT ${DIED_OF}, attempt, (
      SELECT a.lease FROM redrive.attempt a WHERE a.job_id = t.id AND a.kind IS NOT NULL ORDER BY a.lease DESC LIMIT 1
    ) AS lease
    FROM json_to_recordset($1::json) AS t(${RECORD_INPUT}, attempt integer)
  ), moved AS (
    DELETE FROM redrive.job j USING input i
    WHERE j.id = i.id AND j.state = 'retrying' AND j.attempt = i.attempt RETURNING j.*
  ), ${BURY_MOVED},
  counted AS (${addToTally('moved', { dead: 'true' })}), ended AS MATERIALIZED (
    SELECT id AS job_id, queue, name, NULL::bigint AS session_id, fingerprint FROM moved
  ), caused AS (${addToFailures('ended', { failures: '0', deaths: '1' })})
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
