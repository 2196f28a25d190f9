// The counts of each queue at full minutes, so that "in the last quarter of an hour" can be told without counting jobs:
// counts by day are too coarse for that, and the history has no order in time.
import { type Queryable, sql } from './database.js'
import { millis, toNumber } from './rows.js'

const KEPT = `interval '3 hours'`
const MOST_QUEUES = 2_000

const DAY = `(coalesce($1::timestamptz, now()) AT TIME ZONE 'UTC')::date`
const COUNTS = `
  SELECT queue, day, sum(completed)::bigint AS completed, sum(failed)::bigint AS failed, sum(dead)::bigint AS dead
  FROM redrive.tally WHERE day >= ${DAY} - 1 GROUP BY queue, day`

const TAKE = sql`
  WITH taken AS (
    INSERT INTO redrive.pulse (at, counts)
    SELECT date_trunc('minute', coalesce($1::timestamptz, now())), coalesce((
      SELECT json_agg(c) FROM (${COUNTS} ORDER BY day DESC, queue LIMIT $2::integer) c), '[]')
    WHERE NOT EXISTS (
      SELECT FROM redrive.pulse WHERE at = date_trunc('minute', coalesce($1::timestamptz, now())))
    ON CONFLICT DO NOTHING RETURNING at
  ), forgotten AS (
    DELETE FROM redrive.pulse WHERE at < coalesce($1::timestamptz, now()) - ${KEPT} AND EXISTS (SELECT FROM taken)
  )
  SELECT 60000 - ${millis(`(coalesce($1::timestamptz, now()) - date_trunc('minute', coalesce($1::timestamptz, now())))`)} AS next`

/** Writes down this minute's counts, unless somebody has; returns how many milliseconds the minute still has. */
export async function takePulse(db: Queryable): Promise<number> {
  const [row] = await db.query<{ next: number }>(TAKE, [db.now(), MOST_QUEUES])
  return toNumber(row?.next)
}

// From the newest pulse that is old enough, or the oldest there is; without any, from midnight.
const SINCE = sql`
  WITH base AS MATERIALIZED (
    SELECT at, counts FROM (
      (SELECT at, counts, 1 AS choice FROM redrive.pulse
       WHERE at <= coalesce($1::timestamptz, now()) - $2::double precision * interval '1 millisecond'
       ORDER BY at DESC LIMIT 1)
      UNION ALL
      (SELECT at, counts, 2 FROM redrive.pulse WHERE at <= coalesce($1::timestamptz, now()) ORDER BY at LIMIT 1)
    ) pulse ORDER BY choice LIMIT 1
  ), start AS MATERIALIZED (
    SELECT coalesce((SELECT at FROM base), ${DAY}::timestamp AT TIME ZONE 'UTC') AS at
  ), counts AS (
    SELECT c.queue, greatest(0, sum(c.completed - coalesce(b.completed, 0))) AS completed,
      greatest(0, sum(c.failed - coalesce(b.failed, 0))) AS failed, greatest(0, sum(c.dead - coalesce(b.dead, 0))) AS dead
    FROM (${COUNTS}) c
    LEFT JOIN (
      SELECT t.* FROM base CROSS JOIN LATERAL json_to_recordset(base.counts)
        AS t(queue text COLLATE "C", day date, completed bigint, failed bigint, dead bigint)
    ) b ON b.queue = c.queue AND b.day = c.day
    WHERE c.day >= (SELECT (at AT TIME ZONE 'UTC')::date FROM start)
    GROUP BY c.queue
  )
  SELECT NULL AS queue, NULL AS completed, NULL AS failed, NULL AS dead, ${millis('start.at')} AS since FROM start
  UNION ALL
  (SELECT queue, completed, failed, dead, NULL FROM counts WHERE completed + failed + dead > 0
   ORDER BY failed DESC, queue LIMIT $3::integer)`

export interface Ended {
  readonly queue: string
  readonly completed: number
  /** Attempts that failed. */
  readonly failed: number
  readonly dead: number
}

/** What ended in each queue in the last `windowMs`, or a little longer: `since` says from when. */
export async function endedWithin(
  db: Queryable,
  windowMs: number,
): Promise<{ readonly since: number; readonly queues: readonly Ended[] }> {
  type Row = { queue: string | null; completed: unknown; failed: unknown; dead: unknown; since: number | null }
  const rows = await db.query<Row>(SINCE, [db.now(), windowMs, MOST_QUEUES])
  return {
    since: toNumber(rows.find(({ queue }) => queue === null)?.since),
    queues: rows.flatMap(({ queue, completed, failed, dead }) =>
      queue === null ? [] : [{ queue, completed: toNumber(completed), failed: toNumber(failed), dead: toNumber(dead) }],
    ),
  }
}
