// Sessions: one row is the lease of every job its worker holds, so renewing costs the same for one job as for a
// thousand (invariant 3). A session that has ended can never be renewed: whoever finds it lapsed ends it first.
import type { JobId, SessionId } from '../domain/ids.js'
import { type Database, sql } from './database.js'
import { listOf, millis } from './rows.js'

export interface NewSession {
  readonly worker: string
  readonly host: string
  readonly pid: number
  readonly version: string | null
  readonly queues: readonly string[]
  readonly concurrency: number
  readonly leaseMs: number
}

const OPEN = sql`
  INSERT INTO redrive.session (worker, host, pid, version, queues, concurrency, started_at, renewed_at, expires_at)
  SELECT $1, $2, $3::integer, $4, $5::json, $6::integer, now, now, now + $7::double precision * interval '1 millisecond'
  FROM (SELECT coalesce($8::timestamptz, now()) AS now) clock RETURNING id`

export async function openSession(db: Database, session: NewSession): Promise<SessionId> {
  const { worker, host, pid, version, queues, concurrency, leaseMs } = session
  const params = [worker, host, pid, version, JSON.stringify(queues), concurrency, leaseMs, db.now()]
  const [row] = await db.query<{ id: string | number }>(OPEN, params)
  return String(row?.id) as SessionId
}

const RENEW = sql`
  WITH renewed AS (
    UPDATE redrive.session SET renewed_at = now, expires_at = now + $2::double precision * interval '1 millisecond'
    FROM (SELECT coalesce($3::timestamptz, now()) AS now) clock
    WHERE id = $1::bigint AND ended_at IS NULL RETURNING id
  )
  SELECT renewed.id, j.id AS cancelled, j.cancel_reason AS reason FROM renewed
  LEFT JOIN (
    SELECT id, session_id, state, cancel_reason FROM redrive.job WHERE cancel_requested_at IS NOT NULL
    ORDER BY cancel_requested_at LIMIT 1000
  ) j ON j.session_id = renewed.id AND j.state = 'active'`

export interface Renewal {
  /** False: the session has ended. Whatever it held belongs to others now. */
  readonly renewed: boolean
  /** Running jobs that a person wants cancelled. */
  readonly cancelled: readonly { readonly id: JobId; readonly reason: string }[]
}

export async function renewSession(db: Database, id: SessionId, leaseMs: number): Promise<Renewal> {
  const rows = await db.query<{ cancelled: JobId | null; reason: string | null }>(RENEW, [id, leaseMs, db.now()])
  const cancelled = rows.flatMap(row =>
    row.cancelled ? [{ id: row.cancelled, reason: row.reason ?? 'cancelled by an operator' }] : [],
  )
  return { renewed: rows.length > 0, cancelled }
}

const END = sql`
  UPDATE redrive.session SET ended_at = coalesce($2::timestamptz, now()), ended_by = 'stopped'
  WHERE id = $1::bigint AND ended_at IS NULL`

export async function endSession(db: Database, id: SessionId): Promise<void> {
  await db.query(END, [id, db.now()])
}

const MOST_LAPSED = 100

const LAPSE = sql`
  WITH clock AS MATERIALIZED (SELECT coalesce($1::timestamptz, now()) AS now),
  lapsed AS (
    UPDATE redrive.session SET ended_at = clock.now, ended_by = 'lapsed' FROM clock
    WHERE id IN (SELECT id FROM redrive.session WHERE ended_at IS NULL AND expires_at < coalesce($1::timestamptz, now())
                 ORDER BY expires_at LIMIT ${String(MOST_LAPSED)} FOR UPDATE SKIP LOCKED)
    RETURNING id, worker
  )
  SELECT id, worker, NULL::double precision AS next_in FROM lapsed
  UNION ALL
  SELECT NULL, NULL, ${millis('s.expires_at')} - ${millis('clock.now')}
  FROM clock CROSS JOIN LATERAL (
    SELECT expires_at FROM redrive.session WHERE ended_at IS NULL AND expires_at >= clock.now ORDER BY expires_at LIMIT 1
  ) s`

export interface Lapses {
  readonly lapsed: readonly { readonly id: SessionId; readonly worker: string }[]
  /** In how long the next session would lapse; undefined where there is none. */
  readonly nextInMs: number | undefined
}

/** Ends the sessions that were not renewed in time. Their jobs are then orphans. */
export async function lapseSessions(db: Database): Promise<Lapses> {
  const rows = await db.query<{ id: string | number | null; worker: string; next_in: number | null }>(LAPSE, [db.now()])
  const lapsed = rows.flatMap(({ id, worker }) => (id === null ? [] : [{ id: String(id) as SessionId, worker }]))
  const nextInMs = lapsed.length === MOST_LAPSED ? 0 : rows.find(({ id }) => id === null)?.next_in
  return { lapsed, nextInMs: nextInMs ?? undefined }
}

/** Another process that searches has this long before its search is repeated. */
const SEARCH_AGAIN_MS = 10_000
/** No statement takes longer: a claim that was under way when its session ended has come to its end. */
const LATE_CLAIM_MS = 60_000

const before = (column: string, ms: number) =>
  `${column} < coalesce($1::timestamptz, now()) - ${ms} * interval '1 millisecond'`

const SEARCH = sql`
  UPDATE redrive.session SET searched_at = coalesce($1::timestamptz, now())
  WHERE id = ANY (ARRAY(
    SELECT id FROM redrive.session
    WHERE ended_at IS NOT NULL AND cleared_at IS NULL AND (searched_at IS NULL OR ${before('searched_at', SEARCH_AGAIN_MS)})
    ORDER BY ended_at LIMIT 1000 FOR UPDATE SKIP LOCKED))
  RETURNING id`

/** Ended sessions that may have left jobs behind, and that nobody else is searching now. */
export async function sessionsToSearch(db: Database): Promise<SessionId[]> {
  const rows = await db.query<{ id: string | number }>(SEARCH, [db.now()])
  return rows.map(({ id }) => String(id) as SessionId)
}

const CLEAR = sql`
  UPDATE redrive.session SET cleared_at = coalesce($1::timestamptz, now())
  WHERE id = ANY ($2::bigint[]) AND cleared_at IS NULL AND ${before('ended_at', LATE_CLAIM_MS)}`

/** Of these, which held nothing: those that ended long enough ago will never hold anything again. */
export async function clearSessions(db: Database, sessions: readonly SessionId[]): Promise<void> {
  await db.query(CLEAR, [db.now(), listOf(sessions)])
}

const LAPSE_ALL = sql`
  UPDATE redrive.session SET ended_at = coalesce($1::timestamptz, now()), ended_by = 'lapsed' WHERE ended_at IS NULL`

/** For a database that nobody else can have open: every session in it belongs to a process that is gone. */
export async function lapseAllSessions(db: Database): Promise<void> {
  await db.query(LAPSE_ALL, [db.now()])
}
