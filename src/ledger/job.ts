// A job as a person sees it, wherever it is: live, in the history, or dead. INVARIANT: an id is in exactly one state.
import type { JobId, Lease } from '../domain/ids.js'
import type { Json } from '../domain/json.js'
import type { State } from '../domain/lifecycle.js'
import { type Queryable, sql } from './database.js'
import { millis, optional, payloadOf, toDate, toJson } from './rows.js'

export interface JobView {
  readonly id: JobId
  readonly state: State
  readonly queue: string
  readonly name: string
  readonly payload: Json
  readonly priority: number
  readonly attempt: number
  readonly maxAttempts?: number
  readonly snoozes: number
  readonly holds: number
  readonly interruptions: number
  readonly lost: number
  readonly redrives: number
  readonly result?: Json
  readonly progress?: Json
  /** Why it is dead or cancelled. */
  readonly reason?: string
  readonly uniqueKey?: string
  readonly service?: string
  readonly tenant?: string
  readonly user?: string
  readonly project?: string
  readonly createdAt: Date
  /** When it became or becomes claimable; only while live. */
  readonly runAt?: Date
  readonly claimedAt?: Date
  readonly finishedAt?: Date
  readonly cancelRequested?: true
}

const sharedBy = (table: string) =>
  `id, queue, name, ${payloadOf(table)} AS payload, unique_key, service, tenant, user_id, project, lost, redrives`
const COUNTERS = 'priority, attempt, snoozes, holds, interruptions, max_attempts'

// A dead letter whose job was sent back and then cancelled is closed, but it is not where the job is: that job ended in
// the history. It died after it was last sent back if, and only if, its redrives are its recovery attempts.
const FIND = sql`
  SELECT ${sharedBy('job')}, ${COUNTERS}, state, NULL AS result, progress::text AS progress, cancel_reason AS reason,
         ${millis('created_at')} AS created_at, ${millis('run_at')} AS run_at, ${millis('claimed_at')} AS claimed_at,
         NULL::double precision AS finished_at, cancel_requested_at IS NOT NULL AS cancel_requested
  FROM redrive.job WHERE id = $1::uuid
  UNION ALL
  SELECT ${sharedBy('dead_letter')}, job_priority, total_attempts, 0, 0, 0, max_attempts, 'dead', NULL, NULL, reason,
         ${millis('job_created_at')}, NULL, NULL, ${millis('died_at')}, false
  FROM redrive.dead_letter
  WHERE id = $1::uuid AND status IN ('pending', 'permanently_failed') AND redrives = recovery_attempts
  UNION ALL
  SELECT ${sharedBy('finished_job')}, ${COUNTERS}, state, result::text, NULL, reason,
         ${millis('created_at')}, NULL, ${millis('claimed_at')}, ${millis('finished_at')}, false
  FROM redrive.finished_job WHERE id = $1::uuid
  LIMIT 1`

type Text = string | null
interface Row {
  id: JobId
  state: State
  queue: string
  name: string
  payload: string
  priority: number
  attempt: number
  max_attempts: number | null
  snoozes: number
  holds: number
  interruptions: number
  lost: number
  redrives: number
  result: Text
  progress: Text
  reason: Text
  unique_key: Text
  service: Text
  tenant: Text
  user_id: Text
  project: Text
  created_at: number
  run_at: number | null
  claimed_at: number | null
  finished_at: number | null
  cancel_requested: boolean
}

const time = (value: number | null) => (value === null ? null : toDate(value))

export async function findJob(db: Queryable, id: JobId): Promise<JobView | undefined> {
  const [row] = await db.query<Row>(FIND, [id])
  if (!row) return undefined
  return {
    id: row.id,
    state: row.state,
    queue: row.queue,
    name: row.name,
    payload: toJson(row.payload),
    priority: row.priority,
    attempt: row.attempt,
    snoozes: row.snoozes,
    holds: row.holds,
    interruptions: row.interruptions,
    lost: row.lost,
    redrives: row.redrives,
    createdAt: toDate(row.created_at),
    ...optional('maxAttempts', row.max_attempts),
    ...optional('result', row.result === null ? null : toJson(row.result)),
    ...optional('progress', row.progress === null ? null : toJson(row.progress)),
    ...optional('reason', row.reason),
    ...optional('uniqueKey', row.unique_key),
    ...optional('service', row.service),
    ...optional('tenant', row.tenant),
    ...optional('user', row.user_id),
    ...optional('project', row.project),
    ...optional('runAt', time(row.run_at)),
    ...optional('claimedAt', time(row.claimed_at)),
    ...optional('finishedAt', time(row.finished_at)),
    ...(row.cancel_requested ? { cancelRequested: true as const } : {}),
  }
}

const PROGRESS = sql`
  UPDATE redrive.job SET progress = $3::json WHERE id = $1::uuid AND lease = $2::bigint AND state = 'active' RETURNING id`

/** False: the job is not this claim's any more. */
export async function saveProgress(db: Queryable, id: JobId, lease: Lease, progress: string): Promise<boolean> {
  return (await db.query(PROGRESS, [id, lease, progress])).length === 1
}

const DEPTH = sql`SELECT count(*) AS depth FROM redrive.job WHERE queue = $1 AND in_line AND state = 'waiting'`

export async function waitingIn(db: Queryable, queue: string): Promise<number> {
  return Number((await db.query<{ depth: string | number }>(DEPTH, [queue]))[0]?.depth)
}
