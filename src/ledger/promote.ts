// Makes due jobs claimable: only these are in the claim index, so a million that wait for their time cost nothing. The
// statement is the function `promote` (0023_planned_promotion.sql).
import { type Database, hot, sql } from './database.js'

const PROMOTE = hot(sql`
  SELECT promoted_in AS queue, jobs::integer, next_due_in FROM redrive.promote($1::timestamptz, $2::integer, $3)`)

export interface Promotion {
  readonly promoted: number
  readonly queues: readonly string[]
  /** How long until the next delayed job is due; undefined when there is none. */
  readonly nextDueInMs: number | undefined
}

export async function promote(db: Database, limit: number, channel: string | null): Promise<Promotion> {
  const params = [db.now(), limit, channel]
  const rows = await db.query<{ queue: string | null; jobs: number; next_due_in: number | null }>(PROMOTE, params)
  let promoted = 0
  let nextDueInMs: number | undefined
  const queues: string[] = []
  for (const row of rows) {
    promoted += row.jobs
    if (row.queue !== null) queues.push(row.queue)
    if (row.next_due_in !== null) nextDueInMs = row.next_due_in
  }
  return { promoted, queues, nextDueInMs }
}
