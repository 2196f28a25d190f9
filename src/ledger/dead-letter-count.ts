// How many dead letters there are, by queue, status and kind. Their index is walked from one combination to the next and the
// entries of each are counted: by one process and not three, and with or without statistics (pitfall 24).
import type { Kind } from '../domain/failure.js'
import type { RecoveryStatus } from '../domain/lifecycle.js'
import { type Queryable, sql } from './database.js'

export interface DeadLetterCount {
  readonly queue: string
  readonly status: RecoveryStatus
  readonly kind: Kind
  readonly count: number
}

/** `letters`: the counts, as a part of a WITH RECURSIVE. */
export const LETTERS = `
  combination AS (
    (SELECT queue, status, kind FROM redrive.dead_letter ORDER BY queue, status, kind LIMIT 1)
    UNION ALL
    SELECT next.* FROM combination c CROSS JOIN LATERAL (
      SELECT queue, status, kind FROM redrive.dead_letter d
      WHERE (d.queue, d.status, d.kind) > (c.queue, c.status, c.kind) ORDER BY queue, status, kind LIMIT 1
    ) next
  ), letters AS MATERIALIZED (
    SELECT c.queue, c.status, c.kind, (
      SELECT count(*) FROM redrive.dead_letter d WHERE d.queue = c.queue AND d.status = c.status AND d.kind = c.kind
    ) AS count FROM combination c
  )`

const COUNTS = sql`WITH RECURSIVE ${LETTERS} SELECT * FROM letters ORDER BY queue, status, kind`

export async function deadLetterCounts(db: Queryable): Promise<DeadLetterCount[]> {
  const rows = await db.query<Omit<DeadLetterCount, 'count'> & { count: string | number }>(COUNTS)
  return rows.map(row => ({ ...row, count: Number(row.count) }))
}
