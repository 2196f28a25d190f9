// Takes waiting jobs for a session: many in one statement, each with a new lease, never one that another holds.
// A lane is one job name of one queue; its index entries are in the order of the line, so that a name this worker
// cannot run (no handler, no free slot) costs nothing to step over.
import type { JobId, Lease, SessionId } from '../domain/ids.js'
import type { ClaimedJob } from '../domain/job.js'
import { type Database, sql } from './database.js'
import { millis } from './rows.js'

export interface Lane {
  readonly queue: string
  readonly name: string
}

export interface LaneDemand extends Lane {
  /** At most so many of this lane. */
  readonly limit: number
}

// A claim is the hottest statement there is: what most jobs do not have travels in one column, which is mostly null.
const COLUMNS = `
  j.id, j.lease, j.queue, j.name, j.priority, j.seq, j.payload::text AS payload, j.attempt, j.lost, j.max_attempts, j.service,
  ${millis('j.created_at')} AS created_at, ${millis('j.claimed_at')} AS claimed_at, ${millis('j.run_at')} AS run_at,
  CASE WHEN j.first_claimed_at <> j.claimed_at THEN ${millis('j.first_claimed_at')} END AS first_claimed_at,
  CASE WHEN j.snoozes + j.holds + j.interruptions + j.redrives > 0
         OR coalesce(j.unique_key, j.tenant, j.user_id, j.project) IS NOT NULL
       THEN json_build_object('snoozes', j.snoozes, 'holds', j.holds, 'interruptions', j.interruptions,
              'redrives', j.redrives, 'uniqueKey', j.unique_key, 'tenant', j.tenant, 'user', j.user_id,
              'project', j.project)::text END AS more`

// INVARIANT: a session that has ended or lapsed claims nothing, and a paused queue gives nothing.
const OPEN = `
  EXISTS (SELECT FROM redrive.session s WHERE s.id = $1::bigint AND s.ended_at IS NULL
          AND s.expires_at > coalesce($2::timestamptz, now()))`
const PAUSED = (queue: string) => `
  EXISTS (SELECT FROM redrive.queue q WHERE q.name = ${queue} AND q.paused_at IS NOT NULL)`

// Rows are taken by their place, which their locks keep still: no join, so no plan that depends on statistics.
const TAKE = `
  UPDATE redrive.job j
  SET state = 'active', attempt = j.attempt + 1, lease = nextval('redrive.lease_seq'), session_id = $1::bigint,
      claimed_at = coalesce($2::timestamptz, now()), started = false,
      first_claimed_at = coalesce(j.first_claimed_at, $2::timestamptz, now())
  WHERE j.ctid = ANY (ARRAY(SELECT place FROM next)) AND j.state = 'waiting'
  RETURNING ${COLUMNS}`

const CLAIM_LANE = sql`
  WITH next AS MATERIALIZED (
    SELECT j.ctid AS place FROM redrive.job j
    WHERE j.queue = $3 AND j.name = $4 AND j.state = 'waiting' AND ${OPEN} AND NOT ${PAUSED('$3')}
    ORDER BY j.priority DESC, j.seq LIMIT $5::integer FOR UPDATE SKIP LOCKED
  ) ${TAKE}`

// Several lanes are one line: first see, without locking, how many of each lane are at the front of the whole;
// then lock that many of each.
const CLAIM_LANES = sql`
  WITH lane AS MATERIALIZED (
    SELECT l.* FROM json_to_recordset($3::json) AS l(queue text COLLATE "C", name text COLLATE "C", "limit" integer)
    WHERE ${OPEN} AND NOT ${PAUSED('l.queue')}
  ), front AS MATERIALIZED (
    SELECT queue, name, count(*) AS share
    FROM (
      SELECT lane.queue, lane.name
      FROM lane CROSS JOIN LATERAL (
        SELECT j.priority, j.seq FROM redrive.job j
        WHERE j.queue = lane.queue AND j.name = lane.name AND j.state = 'waiting'
        ORDER BY j.priority DESC, j.seq LIMIT lane.limit
      ) ahead
      ORDER BY ahead.priority DESC, ahead.seq LIMIT $4::integer
    ) line
    GROUP BY queue, name
  ), next AS MATERIALIZED (
    SELECT taken.place FROM front CROSS JOIN LATERAL (
      SELECT j.ctid AS place FROM redrive.job j
      WHERE j.queue = front.queue AND j.name = front.name AND j.state = 'waiting'
      ORDER BY j.priority DESC, j.seq LIMIT front.share FOR UPDATE SKIP LOCKED
    ) taken
  ) ${TAKE}`

interface Row {
  id: JobId
  lease: string | number
  queue: string
  name: string
  priority: number
  seq: string | number
  payload: string
  attempt: number
  lost: number
  max_attempts: number | null
  service: string | null
  created_at: number
  claimed_at: number
  run_at: number
  first_claimed_at: number | null
  more: string | null
}

interface More {
  readonly snoozes: number
  readonly holds: number
  readonly interruptions: number
  readonly redrives: number
  readonly uniqueKey: string | null
  readonly tenant: string | null
  readonly user: string | null
  readonly project: string | null
}

/** Made field by field: spreading would cost more than the rest of a claim on this side. */
function toJob(row: Row): ClaimedJob {
  const more = row.more === null ? undefined : (JSON.parse(row.more) as More)
  const job: { -readonly [Key in keyof ClaimedJob]: ClaimedJob[Key] } = {
    id: row.id,
    lease: String(row.lease) as Lease,
    queue: row.queue,
    name: row.name,
    priority: row.priority,
    payloadText: row.payload,
    attempt: row.attempt,
    snoozes: more?.snoozes ?? 0,
    holds: more?.holds ?? 0,
    interruptions: more?.interruptions ?? 0,
    lost: row.lost,
    redrives: more?.redrives ?? 0,
    createdAt: row.created_at,
    firstClaimedAt: row.first_claimed_at ?? row.claimed_at,
    claimedAt: row.claimed_at,
    waitingSince: row.run_at,
    suspect: row.lost > 0,
  }
  if (row.max_attempts !== null) job.maxAttempts = row.max_attempts
  if (row.service !== null) job.service = row.service
  if (!more) return job
  if (more.uniqueKey !== null) job.uniqueKey = more.uniqueKey
  if (more.tenant !== null) job.tenant = more.tenant
  if (more.user !== null) job.user = more.user
  if (more.project !== null) job.project = more.project
  return job
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
  const rows =
    lanes.length === 1
      ? await db.query<Row>(CLAIM_LANE, [session, db.now(), only.queue, only.name, Math.min(limit, only.limit)])
      : await db.query<Row>(CLAIM_LANES, [session, db.now(), JSON.stringify(lanes), limit])
  rows.sort((a, b) => b.priority - a.priority || Number(a.seq) - Number(b.seq))
  return rows.map(toJob)
}

const HELD = sql`
  SELECT ${COLUMNS} FROM redrive.job j WHERE j.session_id = $1::bigint AND j.state = 'active'
  ORDER BY j.lease`

/** Everything a session holds, as it was claimed: for a worker that missed the answer to a claim. */
export async function heldBy(db: Database, session: SessionId): Promise<ClaimedJob[]> {
  return (await db.query<Row>(HELD, [session])).map(toJob)
}

const MARK_STARTED = sql`
  UPDATE redrive.job SET started = true WHERE id = $1::uuid AND lease = $2::bigint RETURNING id`

/** Records that a suspect job is about to run, so that a crash is blamed on it and not on its neighbours. */
export async function markStarted(db: Database, job: { id: JobId; lease: Lease }): Promise<boolean> {
  return (await db.query(MARK_STARTED, [job.id, job.lease])).length === 1
}

const ORPHANS = sql`
  SELECT ${COLUMNS}, j.started, s.worker, s.ended_by FROM redrive.job j
  LEFT JOIN redrive.session s ON s.id = j.session_id
  WHERE j.state = 'active' AND (s.id IS NULL OR s.ended_at IS NOT NULL)
  ORDER BY j.lease LIMIT $1::integer`

export interface Orphan extends ClaimedJob {
  /** False: it was in its dead worker's buffer and surely never ran. True: it ran, or may have. */
  readonly mayHaveRun: boolean
  readonly worker: string
}

/** Running jobs whose session has ended: nobody is working on them any more. */
export async function orphans(db: Database, limit: number): Promise<Orphan[]> {
  const rows = await db.query<Row & { started: boolean; worker: string | null }>(ORPHANS, [limit])
  return rows.map(row => ({
    ...toJob(row),
    mayHaveRun: row.started || row.lost === 0,
    worker: row.worker ?? 'an unknown worker',
  }))
}
