// Workers as a person sees them: the sessions that are open, and those that ended lately.
import { type Queryable, sql } from './database.js'
import type { Count } from './dead-letter.js'
import { millis, optional, toDate, toJson } from './rows.js'

export interface WorkerView {
  /** Of its session. */
  readonly id: string
  readonly worker: string
  readonly host: string
  readonly pid: number
  readonly version?: string
  readonly queues: readonly string[]
  readonly concurrency: number
  /** `silent`: its lease has lapsed, and nobody has ended it yet. */
  readonly state: 'live' | 'silent' | 'stopped' | 'lapsed'
  readonly startedAt: Date
  readonly renewedAt: Date
  readonly expiresAt: Date
  readonly endedAt?: Date
}

const COLUMNS = `id, worker, host, pid, version, queues::text AS queues, concurrency, ended_by,
  expires_at < coalesce($1::timestamptz, now()) AS silent, ${millis('started_at')} AS started_at,
  ${millis('renewed_at')} AS renewed_at, ${millis('expires_at')} AS expires_at, ${millis('ended_at')} AS ended_at`

const LIST = sql`
  SELECT ${COLUMNS} FROM redrive.session
  WHERE ($2::bigint IS NULL OR id < $2::bigint) AND ($4::boolean OR ended_at IS NULL)
  ORDER BY id DESC LIMIT $3::integer`

/** Newest first; with `ended`, those that are no more as well. */
export async function listWorkers(
  db: Queryable,
  { before, limit, ended }: { before?: string; limit: number; ended: boolean },
): Promise<WorkerView[]> {
  const rows = await db.query<Row>(LIST, [db.now(), before ?? null, limit, ended])
  return rows.map(row => ({
    id: String(row.id),
    worker: row.worker,
    host: row.host,
    pid: row.pid,
    queues: toJson(row.queues) as string[],
    concurrency: row.concurrency,
    state: row.ended_by ?? (row.silent ? 'silent' : 'live'),
    startedAt: toDate(row.started_at),
    renewedAt: toDate(row.renewed_at),
    expiresAt: toDate(row.expires_at),
    ...optional('version', row.version),
    ...optional('endedAt', row.ended_at === null ? null : toDate(row.ended_at)),
  }))
}

const HOW_MANY = sql`
  SELECT count(*) AS workers FROM (
    SELECT FROM redrive.session WHERE $1::boolean OR ended_at IS NULL LIMIT $2::integer) s`

export async function countWorkers(db: Queryable, ended: boolean, upTo: number): Promise<Count> {
  const [row] = await db.query<{ workers: string | number }>(HOW_MANY, [ended, upTo + 1])
  const found = Number(row?.workers)
  return { value: Math.min(found, upTo), exact: found <= upTo }
}

interface Row {
  id: string | number
  worker: string
  host: string
  pid: number
  version: string | null
  queues: string
  concurrency: number
  ended_by: 'stopped' | 'lapsed' | null
  silent: boolean
  started_at: number
  renewed_at: number
  expires_at: number
  ended_at: number | null
}
