// Queues: known by name, paused or not.
import { type Queryable, sql } from './database.js'
import { millis, optional, toDate } from './rows.js'

export interface QueueSettings {
  readonly name: string
  readonly paused: boolean
  readonly pausedAt?: Date
  readonly pausedBy?: string
}

const ENSURE = sql`
  INSERT INTO redrive.queue (name) SELECT value FROM json_array_elements_text($1::json) ORDER BY value
  ON CONFLICT DO NOTHING`

/** Makes queues known, so that statistics list them even while they are empty. */
export async function ensureQueues(db: Queryable, names: readonly string[]): Promise<void> {
  await db.query(ENSURE, [JSON.stringify(names)])
}

const SETTINGS = sql`
  SELECT name, ${millis('paused_at')} AS paused_at, paused_by FROM redrive.queue
  WHERE name IN (SELECT json_array_elements_text($1::json))`

export async function queueSettings(db: Queryable, names: readonly string[]): Promise<QueueSettings[]> {
  const rows = await db.query<{ name: string; paused_at: number | null; paused_by: string | null }>(SETTINGS, [
    JSON.stringify(names),
  ])
  return rows.map(({ name, paused_at, paused_by }) => ({
    name,
    paused: paused_at !== null,
    ...optional('pausedAt', paused_at === null ? null : toDate(paused_at)),
    ...optional('pausedBy', paused_by),
  }))
}

const PAUSE = sql`
  INSERT INTO redrive.queue (name, paused_at, paused_by) VALUES ($1, coalesce($3::timestamptz, now()), $2)
  ON CONFLICT (name) DO UPDATE
  SET paused_at = coalesce(queue.paused_at, excluded.paused_at), paused_by = coalesce(queue.paused_by, excluded.paused_by),
      updated_at = excluded.paused_at`

export async function pauseQueue(db: Queryable, name: string, actor: string): Promise<void> {
  await db.query(PAUSE, [name, actor, db.now()])
}

const RESUME = sql`
  UPDATE redrive.queue SET paused_at = NULL, paused_by = NULL, updated_at = coalesce($2::timestamptz, now())
  WHERE name = $1 RETURNING CASE WHEN $3::text IS NOT NULL THEN pg_notify($3, name) END AS woken`

/** False: there is no such queue. */
export async function resumeQueue(db: Queryable, name: string, channel: string | null): Promise<boolean> {
  return (await db.query(RESUME, [name, db.now(), channel])).length === 1
}

const STATISTICS = sql`SELECT * FROM redrive.queue_statistics ORDER BY queue_name`

export interface QueueStatistics {
  readonly queue: string
  readonly waiting: number
  readonly active: number
  readonly scheduled: number
  readonly retrying: number
  readonly held: number
  readonly completed: number
  readonly cancelled: number
  readonly dead: number
  readonly oldestWaitingAt: Date | null
  readonly paused: boolean
}

export async function queueStatistics(db: Queryable): Promise<QueueStatistics[]> {
  return (await db.query<Row>(STATISTICS)).map(toStatistics)
}

type Row = Record<string, unknown>

const toStatistics = (row: Row): QueueStatistics => ({
  queue: String(row.queue_name),
  waiting: Number(row.waiting_count),
  active: Number(row.active_count),
  scheduled: Number(row.scheduled_count),
  retrying: Number(row.retryable_count),
  held: Number(row.held_count),
  completed: Number(row.completed_count),
  cancelled: Number(row.cancelled_count),
  dead: Number(row.failed_count),
  oldestWaitingAt: row.oldest_waiting_at === null ? null : new Date(row.oldest_waiting_at as Date | string),
  paused: row.paused === true,
})
