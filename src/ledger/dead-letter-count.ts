// How many dead letters there are, by queue, status and kind: kept by the database whenever one changes, each connection for
// itself (migrations/0011_letter_counts.sql), so that it costs the same however many there are.
import type { Kind } from '../domain/failure.js'
import type { RecoveryStatus } from '../domain/lifecycle.js'
import { type Queryable, sql } from './database.js'

export interface DeadLetterCount {
  readonly queue: string
  readonly status: RecoveryStatus
  readonly kind: Kind
  readonly count: number
}

const COUNTS = sql`
  SELECT queue, status, kind, sum(count) AS count FROM redrive.dead_letter_count
  GROUP BY queue, status, kind HAVING sum(count) > 0 ORDER BY queue, status, kind`

export async function deadLetterCounts(db: Queryable): Promise<DeadLetterCount[]> {
  const rows = await db.query<Omit<DeadLetterCount, 'count'> & { count: string | number }>(COUNTS)
  return rows.map(row => ({ ...row, count: Number(row.count) }))
}

// A row that its connection is adding to is not of one that is gone. Whoever comes back with the same number begins anew.
const FOLD = sql`
  WITH gone AS (
    DELETE FROM redrive.dead_letter_count WHERE shard <> 0 AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = shard)
    RETURNING queue, status, kind, count
  )
  INSERT INTO redrive.dead_letter_count AS c (queue, status, kind, shard, count)
  SELECT queue, status, kind, 0, sum(count) FROM gone GROUP BY queue, status, kind ORDER BY queue, status, kind
  ON CONFLICT (queue, status, kind, shard) DO UPDATE SET count = c.count + excluded.count`

/** Draws the counts together that connections kept which are gone. */
export async function foldLetterCounts(db: Queryable): Promise<void> {
  await db.query(FOLD)
}
