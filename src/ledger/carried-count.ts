// How many jobs of broker queues succeeded, wait and run: counted by the processes that see them, because a success that
// the broker carried leaves no row.
import type { SessionId } from '../domain/ids.js'
import { type Database, type Queryable, sql } from './database.js'
import { settlingShard } from './settle/tally.js'
import { TRANSACTION_ID } from './transaction-fate.js'

/** A lane of its own beside those that settle and park. */
const COUNTING_LANE = 14

const COMPLETED = sql`
  INSERT INTO redrive.tally (queue, day, shard, completed)
  SELECT queue, (coalesce($2::timestamptz, now()) AT TIME ZONE 'UTC')::date, $3::bigint, completed
  FROM json_to_recordset($1::json) AS t(queue text, completed bigint) ORDER BY queue
  ON CONFLICT (queue, day, shard) DO UPDATE SET completed = tally.completed + excluded.completed
  RETURNING ${TRANSACTION_ID} AS transaction_id`

/** `onWritten`: told, before the commit is asked for, by what to find out whether it came to pass (transaction-fate.ts). */
export async function addCompleted(
  db: Database,
  session: SessionId,
  completed: ReadonlyMap<string, number>,
  onWritten: (transactionId: string) => void,
): Promise<void> {
  const rows = [...completed].map(([queue, count]) => ({ queue, completed: count }))
  const params = [JSON.stringify(rows), db.now(), settlingShard(session, COUNTING_LANE)]
  await db.transaction(async tx => {
    const [written] = await tx.query<{ transaction_id: string }>(COMPLETED, params)
    if (written) onWritten(written.transaction_id)
  })
}

export interface CarriedCount {
  readonly queue: string
  /** A session, or a broker's name. */
  readonly source: string
  readonly waiting: number
  readonly active: number
}

const COUNT = sql`
  INSERT INTO redrive.carried_count AS c (queue, source, waiting, active, at)
  SELECT queue, source, waiting, active, coalesce($2::timestamptz, now()) FROM json_to_recordset($1::json)
    AS t(queue text, source text, waiting bigint, active bigint) ORDER BY queue, source
  ON CONFLICT (queue, source) DO UPDATE SET waiting = excluded.waiting, active = excluded.active, at = excluded.at`

const FORGET = sql`
  DELETE FROM redrive.carried_count WHERE at < coalesce($1::timestamptz, now()) - interval '30 seconds'`

/** Takes down what is there now, and removes what nobody has renewed for long. */
export async function countCarried(db: Queryable, counts: readonly CarriedCount[]): Promise<void> {
  if (counts.length === 0) return
  await db.query(COUNT, [JSON.stringify(counts), db.now()])
  await db.query(FORGET, [db.now()])
}

const LEAVE = sql`DELETE FROM redrive.carried_count WHERE source = $1`

/** A worker stops: it has nothing in its hands any more. */
export async function forgetCarried(db: Database, source: string): Promise<void> {
  await db.query(LEAVE, [source])
}
