// Recovery runs, each on record: what it did, how long it took, how it ended. At most one runs at a time: a short
// advisory lock guards the election, and the run's own row is its lease, so that nothing is held when its process
// dies, and no transaction stays open while it works (pitfall 18).
import { type Database, sql } from './database.js'
import { millis, optional, toDate } from './rows.js'

export type RecoveryCause = 'schedule' | 'demand' | 'lapsed_session'

export interface RecoveryCounts {
  readonly rescued: number
  readonly promoted: number
  readonly buried: number
  /** Dead letters that triage rules did something about. */
  readonly triaged: number
  /** Finished jobs that were past their retention. */
  readonly cleaned: number
  /** Resolved dead letters that were past theirs. */
  readonly expired: number
}

export interface RecoveryRun extends RecoveryCounts {
  readonly id: string
  readonly cause: RecoveryCause
  readonly worker: string
  readonly status: 'running' | 'succeeded' | 'failed'
  readonly startedAt: Date
  readonly finishedAt?: Date
  readonly durationMs?: number
  readonly error?: string
}

/** A run that has not shown life for so long is taken to be dead. */
const SILENT_MS = 60_000

// Whoever is in the middle of starting a run decides; nobody waits for it, were it frozen there.
const LOCK = sql`SELECT pg_try_advisory_xact_lock(7203371, 2) AS locked`

const GIVE_UP_SILENT = sql`
  UPDATE redrive.recovery_run
  SET status = 'failed', finished_at = coalesce($1::timestamptz, now()), error = 'its process stopped showing life'
  WHERE status = 'running' AND alive_at < coalesce($1::timestamptz, now()) - $2::double precision * interval '1 millisecond'`

const COLUMNS = `id, cause, worker, status, rescued, promoted, buried, triaged, cleaned, expired, error,
  ${millis('started_at')} AS started_at, ${millis('finished_at')} AS finished_at`

const START = sql`
  INSERT INTO redrive.recovery_run (cause, worker, started_at, alive_at)
  SELECT $1, $2, now, now FROM (SELECT coalesce($3::timestamptz, now()) AS now) clock
  WHERE NOT EXISTS (SELECT FROM redrive.recovery_run WHERE status = 'running')
    AND ($4::double precision IS NULL OR NOT EXISTS (
      SELECT FROM redrive.recovery_run
      WHERE cause = 'schedule' AND started_at > now - $4::double precision * interval '1 millisecond'))
  RETURNING ${COLUMNS}`

/**
 * Starts a run, unless one is running or, with `ifNoneWithinMs`, a scheduled one started so recently.
 */
export function startRun(
  db: Database,
  cause: RecoveryCause,
  worker: string,
  ifNoneWithinMs?: number,
): Promise<RecoveryRun | undefined> {
  return db.transaction(async tx => {
    const [lock] = await tx.query<{ locked: boolean }>(LOCK)
    if (!lock?.locked) return undefined
    await tx.query(GIVE_UP_SILENT, [tx.now(), SILENT_MS])
    const [row] = await tx.query<Row>(START, [cause, worker, tx.now(), ifNoneWithinMs ?? null])
    return row && toRun(row)
  })
}

const ALIVE = sql`
  UPDATE redrive.recovery_run SET alive_at = coalesce($2::timestamptz, now()) WHERE id = $1::bigint AND status = 'running'
  RETURNING id`

/** False: the run was given up by another process; stop it. */
export async function showLife(db: Database, id: string): Promise<boolean> {
  return (await db.query(ALIVE, [id, db.now()])).length === 1
}

const FINISH = sql`
  UPDATE redrive.recovery_run
  SET status = $2, error = $3, finished_at = coalesce($9::timestamptz, clock_timestamp()), rescued = $4::integer,
      promoted = $5::integer, buried = $6::integer, cleaned = $7::bigint, expired = $8::bigint,
      triaged = $10::integer
  WHERE id = $1::bigint AND status = 'running' RETURNING ${COLUMNS}`

export async function finishRun(
  db: Database,
  id: string,
  counts: RecoveryCounts,
  error: string | null,
): Promise<RecoveryRun | undefined> {
  const { rescued, promoted, buried, triaged, cleaned, expired } = counts
  const status = error === null ? 'succeeded' : 'failed'
  const params = [id, status, error, rescued, promoted, buried, cleaned, expired, db.now(), triaged]
  const [row] = await db.query<Row>(FINISH, params)
  return row && toRun(row)
}

const RECENT = sql`SELECT ${COLUMNS} FROM redrive.recovery_run ORDER BY id DESC LIMIT $1::integer`
const TOTALS = sql`
  SELECT count(*) AS total, count(*) FILTER (WHERE status = 'succeeded') AS successful,
         count(*) FILTER (WHERE status = 'failed') AS failed FROM redrive.recovery_run`

export interface RecoveryStatistics {
  readonly totalRuns: number
  readonly successfulRuns: number
  readonly failedRuns: number
  readonly running: boolean
  readonly lastRunAt?: Date
  readonly lastRunDurationMs?: number
  readonly recent: readonly RecoveryRun[]
}

export async function recoveryStatistics(db: Database, recent = 20): Promise<RecoveryStatistics> {
  const [totals] = await db.query<Record<'total' | 'successful' | 'failed', string | number>>(TOTALS)
  const runs = (await db.query<Row>(RECENT, [recent])).map(toRun)
  const last = runs.find(run => run.status !== 'running')
  return {
    totalRuns: Number(totals?.total),
    successfulRuns: Number(totals?.successful),
    failedRuns: Number(totals?.failed),
    running: runs.some(run => run.status === 'running'),
    recent: runs,
    ...optional('lastRunAt', last?.startedAt),
    ...optional('lastRunDurationMs', last?.durationMs),
  }
}

interface Row {
  id: string | number
  cause: RecoveryCause
  worker: string
  status: RecoveryRun['status']
  rescued: number
  promoted: number
  buried: number
  cleaned: string | number
  expired: string | number
  triaged: number
  error: string | null
  started_at: number
  finished_at: number | null
}

const toRun = (row: Row): RecoveryRun => ({
  id: String(row.id),
  cause: row.cause,
  worker: row.worker,
  status: row.status,
  rescued: row.rescued,
  promoted: row.promoted,
  buried: row.buried,
  cleaned: Number(row.cleaned),
  expired: Number(row.expired),
  triaged: row.triaged,
  startedAt: toDate(row.started_at),
  ...optional('finishedAt', row.finished_at === null ? null : toDate(row.finished_at)),
  ...optional('durationMs', row.finished_at === null ? null : Math.round(row.finished_at - row.started_at)),
  ...optional('error', row.error),
})
