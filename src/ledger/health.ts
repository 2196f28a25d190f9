// What health is judged by: the lines, their workers, what is overdue. Each part reads the front of an index, so that it
// costs the same with one job as with a million.
import { type Queryable, sql } from './database.js'
import { millis, optional } from './rows.js'

/** Jobs of one name in one queue that wait now. Ages are milliseconds. */
export interface WaitingLane {
  readonly queue: string
  readonly name: string
  /** For how long the one that waits longest has been waiting. */
  readonly waitedMs: number
  readonly paused: boolean
  /** Some worker with a live session takes jobs from the queue. */
  readonly worked: boolean
  /** Some worker once announced the job. */
  readonly known: boolean
  /** The service it was announced to call. */
  readonly service: string | null
}

export interface SilentSession {
  readonly worker: string
  /** For how long its lease has been over, without anybody ending it. */
  readonly silentMs: number
}

export interface LastRecovery {
  readonly startedMsAgo: number
  readonly error?: string
}

export interface Lines {
  /** The database's time. */
  readonly now: number
  readonly lanes: readonly WaitingLane[]
  readonly silentSessions: readonly SilentSession[]
  /** For how long the first delayed job or retry has been due without being put in line; 0: none is. */
  readonly overdueMs: number
  /** The last full recovery run. */
  readonly recovery?: LastRecovery
  readonly openDeadLetters: number
  /** Something will still run, or somebody would run it. */
  readonly alive: boolean
  /** No queue, job or dead letter was ever seen. */
  readonly empty: boolean
}

/** More fronts than this, of lanes and priorities, are not walked along. */
const MOST_FRONTS = 1_000
const LANES_TOLD = 100
/** Open dead letters are counted up to here. */
export const COUNTED_UP_TO = 10_000

const READ = sql`
  WITH clock AS MATERIALIZED (SELECT coalesce($1::timestamptz, now()) AS now),
  open AS MATERIALIZED (
    SELECT worker, queues, expires_at FROM redrive.session WHERE ended_at IS NULL ORDER BY expires_at DESC LIMIT 10000
  ), worked AS MATERIALIZED (
    SELECT DISTINCT q.queue FROM open CROSS JOIN LATERAL json_array_elements_text(open.queues) AS q(queue)
    WHERE open.expires_at > (SELECT now FROM clock)
  ), lane AS MATERIALIZED (
    SELECT of_queue AS queue, of_name AS name, min(since) AS since FROM redrive.backlog($2::integer) GROUP BY 1, 2
    ORDER BY min(since) LIMIT $3::integer
  ), run AS MATERIALIZED (
    SELECT * FROM (SELECT * FROM redrive.recovery_run ORDER BY id DESC LIMIT 1000) recent
    WHERE cause <> 'lapsed_session' ORDER BY id DESC LIMIT 1
  ), due AS MATERIALIZED (
    SELECT run_at, state FROM redrive.job WHERE NOT in_line ORDER BY run_at, line LIMIT 1000
  )
  SELECT ${millis('now')} AS now,
    (SELECT coalesce(json_agg(json_build_object('queue', lane.queue, 'name', lane.name,
       'waitedMs', greatest(0, ${millis('(now - lane.since)')}),
       'paused', EXISTS (SELECT FROM redrive.queue q WHERE q.name = lane.queue AND q.paused_at IS NOT NULL),
       'worked', lane.queue IN (SELECT queue FROM worked),
       'known', t.name IS NOT NULL, 'service', t.service)), '[]')
     FROM lane LEFT JOIN redrive.job_type t ON t.queue = lane.queue AND t.name = lane.name)::text AS lanes,
    (SELECT coalesce(json_agg(json_build_object('worker', s.worker, 'silentMs', ${millis('(now - s.expires_at)')})), '[]')
     FROM (SELECT * FROM open WHERE expires_at <= now ORDER BY expires_at LIMIT 100) s)::text AS silent,
    (SELECT ${millis('(now - min(run_at))')} FROM due WHERE state <> 'held' AND run_at < now) AS overdue,
    (SELECT ${millis('(now - started_at)')} FROM run) AS recovered_ago,
    (SELECT error FROM run WHERE status = 'failed') AS recovery_error,
    (SELECT count(*) FROM (
      SELECT FROM redrive.dead_letter WHERE status = 'pending' ORDER BY status, kind, died_at, seq
      LIMIT (SELECT $4::integer)) letters) AS dead_letters,
    EXISTS (SELECT FROM lane) OR EXISTS (SELECT FROM due) AS has_jobs,
    EXISTS (SELECT FROM open WHERE expires_at > now) AS has_workers,
    EXISTS (SELECT FROM redrive.queue) OR EXISTS (SELECT FROM redrive.tally) AS has_history
  FROM clock`

interface Row {
  now: number
  lanes: string
  silent: string
  overdue: number | null
  recovered_ago: number | null
  recovery_error: string | null
  dead_letters: string | number
  has_jobs: boolean
  has_workers: boolean
  has_history: boolean
}

export async function readLines(db: Queryable): Promise<Lines> {
  const params = [db.now(), MOST_FRONTS, LANES_TOLD, COUNTED_UP_TO]
  const [row] = await db.query<Row>(READ, params)
  if (!row) throw new Error('the ledger gave no answer')
  const deadLetters = Number(row.dead_letters)
  return {
    now: row.now,
    lanes: JSON.parse(row.lanes) as WaitingLane[],
    silentSessions: JSON.parse(row.silent) as SilentSession[],
    overdueMs: row.overdue ?? 0,
    openDeadLetters: deadLetters,
    alive: row.has_jobs || row.has_workers,
    empty: !(row.has_jobs || row.has_workers || row.has_history || deadLetters > 0),
    ...(row.recovered_ago !== null && {
      recovery: { startedMsAgo: row.recovered_ago, ...optional('error', row.recovery_error) },
    }),
  }
}
