// How many workers look after each queue now.
import { type Queryable, sql } from './database.js'
import { toNumber } from './rows.js'

const COUNT = sql`
  SELECT q.queue, count(*) AS workers
  FROM redrive.session s CROSS JOIN LATERAL json_array_elements_text(s.queues) AS q(queue)
  WHERE s.ended_at IS NULL AND s.expires_at > coalesce($1::timestamptz, now())
  GROUP BY q.queue ORDER BY q.queue LIMIT $2::integer`

export async function workersByQueue(db: Queryable, most: number): Promise<{ queue: string; workers: number }[]> {
  const rows = await db.query<{ queue: string; workers: unknown }>(COUNT, [db.now(), most])
  return rows.map(({ queue, workers }) => ({ queue, workers: toNumber(workers) }))
}
