// Takes waiting jobs for a session: many in one statement, each with a new lease, never one that another holds.
// A lane is one job name of one queue; its index entries are in the order of the line, so that a name this worker
// cannot run (no handler, no free slot) costs nothing to step over.
import type { JobId, Lease, SessionId } from '../domain/ids.js'
import type { ClaimedJob } from '../domain/job.js'
import { type Database, sql } from './database.js'
import { listOf } from './rows.js'

export interface Lane {
  readonly queue: string
  readonly name: string
}

export interface LaneDemand extends Lane {
  /** At most so many of this lane. */
  readonly limit: number
  /** The place in line to begin at: what lies before it was seen to be taken. */
  readonly after?: string
}

const TAKE = sql`SELECT * FROM redrive.take($1::timestamptz, $2::bigint, $3, $4, $5::integer, $6::bigint)`
const TAKE_LANES = sql`SELECT * FROM redrive.take_lanes($1::timestamptz, $2::bigint, $3::json, $4::integer)`

// The columns of redrive.taken_job.
const COLUMNS = `
  j.ctid AS place, j.id, j.lease, j.line, j.queue, j.name, j.payload::text AS payload, j.attempt, j.priority,
  redrive.millis(j.created_at) AS created_at, redrive.millis(j.claimed_at) AS claimed_at,
  redrive.millis(j.run_at) AS run_at, j.max_attempts, j.service, j.unique_key, j.tenant, j.user_id, j.project, j.trace,
  redrive.past_of(j) AS past`

interface Row {
  place: string
  id: JobId
  lease: string | number
  /** PGlite says it as a bigint. */
  line: string | bigint
  /** Null: of the only lane that was asked for. */
  queue: string | null
  name: string | null
  payload: string
  attempt: number
  priority: number
  created_at: string | number
  claimed_at: string | number
  /** Null: as it was created. */
  run_at: string | number | null
  max_attempts: number | null
  service: string | null
  unique_key: string | null
  tenant: string | null
  user_id: string | null
  project: string | null
  trace: string | null
  /** Null: this is its first attempt. */
  past: string | null
}

/** Made field by field: spreading would cost more than the rest of a claim on this side. */
function toJob(row: Row, lane?: Lane): ClaimedJob {
  const createdAt = Number(row.created_at)
  const claimedAt = Number(row.claimed_at)
  const job: { -readonly [Key in keyof ClaimedJob]: ClaimedJob[Key] } = {
    id: row.id,
    lease: String(row.lease) as Lease,
    receipt: row.place,
    line: String(row.line),
    queue: row.queue ?? (lane as Lane).queue,
    name: row.name ?? (lane as Lane).name,
    priority: row.priority,
    payloadText: row.payload,
    attempt: row.attempt,
    snoozes: 0,
    holds: 0,
    interruptions: 0,
    lost: 0,
    redrives: 0,
    createdAt,
    firstClaimedAt: claimedAt,
    claimedAt,
    waitingSince: row.run_at === null ? createdAt : Number(row.run_at),
    suspect: false,
  }
  if (row.max_attempts !== null) job.maxAttempts = row.max_attempts
  if (row.service !== null) job.service = row.service
  if (row.unique_key !== null) job.uniqueKey = row.unique_key
  if (row.tenant !== null) job.tenant = row.tenant
  if (row.user_id !== null) job.user = row.user_id
  if (row.project !== null) job.project = row.project
  if (row.trace !== null) job.trace = row.trace
  if (row.past !== null) Object.assign(job, pastOf(row.past))
  return job
}

/** As redrive.past_of says it. */
function pastOf(past: string): Partial<ClaimedJob> {
  const [firstClaimedAt, snoozes, holds, interruptions, lost = 0, redrives, ...held] = past.split(',')
  const heldBy = held.join(',')
  return {
    firstClaimedAt: Number(firstClaimedAt),
    snoozes: Number(snoozes),
    holds: Number(holds),
    interruptions: Number(interruptions),
    lost: Number(lost),
    redrives: Number(redrives),
    suspect: Number(lost) > 0,
    ...(heldBy !== '' && { heldBy }),
  }
}

/** Up to `limit` jobs, first in line first. */
export async function claim(
  db: Database,
  session: SessionId,
  lanes: readonly LaneDemand[],
  limit: number,
): Promise<ClaimedJob[]> {
  const [only] = lanes
  if (!only || limit < 1) return []
  const alone = lanes.length === 1
  const rows = alone
    ? await db.query<Row>(TAKE, [
        db.now(),
        session,
        only.queue,
        only.name,
        Math.min(limit, only.limit),
        only.after ?? null,
      ])
    : await db.query<Row>(TAKE_LANES, [db.now(), session, JSON.stringify(lanes), limit])
  inOrder(rows)
  return rows.map(row => toJob(row, only))
}

/** Rows come as they lie in the table, which is mostly their order already. Places exceed what a number holds exactly. */
function inOrder(rows: Row[]): void {
  let sorted = true
  for (let index = 1; sorted && index < rows.length; index += 1) {
    sorted = compare((rows[index - 1] as Row).line, (rows[index] as Row).line) < 0
  }
  if (!sorted) rows.sort((a, b) => compare(a.line, b.line))
}

/** Whole numbers as text: the longer is the larger. */
const compare = (a: Row['line'], b: Row['line']): number => {
  const [left, right] = [String(a), String(b)]
  return left.length - right.length || (left < right ? -1 : Number(left > right))
}

const HELD = sql`
  SELECT ${COLUMNS} FROM redrive.job j WHERE j.in_line AND j.session_id = $1::bigint AND j.state = 'active'
  ORDER BY j.lease`

/** Everything a session holds, as it was claimed: for a worker that missed the answer to a claim. */
export async function heldBy(db: Database, session: SessionId): Promise<ClaimedJob[]> {
  return (await db.query<Row>(HELD, [session])).map(row => toJob(row))
}

const MARK_STARTED = sql`
  UPDATE redrive.job SET started = true WHERE id = $1::uuid AND lease = $2::bigint RETURNING id`

/** Records that a suspect job is about to run, so that a crash is blamed on it and not on its neighbours. */
export async function markStarted(db: Database, job: { id: JobId; lease: Lease }): Promise<boolean> {
  return (await db.query(MARK_STARTED, [job.id, job.lease])).length === 1
}

// An index that finds the jobs of a session would cost every claim; a scan of the lines costs only a session's end.
const ORPHANS = sql`
  SELECT ${COLUMNS}, j.started, (SELECT s.worker FROM redrive.session s WHERE s.id = j.session_id) AS worker
  FROM redrive.job j
  WHERE j.in_line AND j.state = 'active' AND j.session_id = ANY ($1::bigint[])
  ORDER BY j.lease LIMIT $2::integer`

export interface Orphan extends ClaimedJob {
  /** False: it was in its dead worker's buffer and surely never ran. True: it ran, or may have. */
  readonly mayHaveRun: boolean
  readonly worker: string
}

/** Running jobs of sessions that have ended: nobody is working on them any more. */
export async function orphans(db: Database, ended: readonly SessionId[], limit: number): Promise<Orphan[]> {
  if (ended.length === 0) return []
  const rows = await db.query<Row & { started: boolean; worker: string | null }>(ORPHANS, [listOf(ended), limit])
  return rows.map(row => {
    const job = toJob(row)
    return { ...job, mayHaveRun: row.started || !job.suspect, worker: row.worker ?? 'an unknown worker' }
  })
}
