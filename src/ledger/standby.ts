// Workers that stand by for jobs to be handed over as they are enqueued (0018_standby.sql), from their side. Whoever stands by is
// told of its jobs on a channel that it listens on; what it did not hear, it finds by looking.
import type { SessionId } from '../domain/ids.js'
import type { ClaimedJob } from '../domain/job.js'
import { type Lane, unpackJob } from './claim.js'
import { type Database, hot, sql } from './database.js'

const RING = sql`SELECT pg_notify($1, $2)`

/** Says something on a channel, or nothing: whoever hears that knows that it can hear. */
export async function ring(db: Database, channel: string, message = ''): Promise<void> {
  await db.query(RING, [channel, message])
}

// Those who are gone without a word are not asked any more after seconds, and cleared away by whoever comes next.
const STAND_BY = sql`
  WITH clock AS (SELECT coalesce($4::timestamptz, now()) AS now),
  before AS (
    DELETE FROM redrive.standby
    WHERE session_id = $1::bigint OR seen_at < (SELECT now FROM clock) - interval '1 minute'
  )
  INSERT INTO redrive.standby (session_id, queue, name, spot, seen_at, channel)
  SELECT $1::bigint, l.queue, l.name, place.spot + turn, clock.now, $2
  FROM clock CROSS JOIN (SELECT random() AS spot) place
  CROSS JOIN json_to_recordset($3::json) AS l(queue text, name text) CROSS JOIN generate_series(0, 1) AS turn
  WHERE EXISTS (SELECT FROM redrive.session s WHERE s.id = $1::bigint AND s.ended_at IS NULL)`

/** From now on, jobs of these lanes may be handed to this session; of none: no more of them. */
export async function standBy(
  db: Database,
  session: SessionId,
  channel: string,
  lanes: readonly Lane[],
): Promise<void> {
  await db.query(STAND_BY, [session, channel, JSON.stringify(lanes), db.now()])
}

const STAND = hot(sql`
  SELECT redrive.stand($1::timestamptz, $2::bigint, $3::json, $4::double precision) AS told`)

export interface Standing {
  /** False: nobody knows that it stands by. */
  readonly stands: boolean
  /** What it has had for so long, heard of or not. */
  readonly held: ClaimedJob[]
}

/** Says that a session still stands by, and asks for the jobs that it has had for `ms`. */
export async function stand(db: Database, session: SessionId, lanes: readonly Lane[], ms: number): Promise<Standing> {
  const params = [db.now(), session, JSON.stringify(lanes), ms]
  const [places, ...jobs] = (await db.query<{ told: string }>(STAND, params)).map(({ told }) => told)
  return { stands: places !== '0', held: jobs.map(job => unpackJob(job)) }
}

const AFTER_SESSION = '\x1e'

/** What was said on a channel: nothing, or whose job it is and the job. */
export function handedOver(message: string): { session: SessionId; job: ClaimedJob } | undefined {
  const end = message.indexOf(AFTER_SESSION)
  if (end < 0) return undefined
  return { session: message.slice(0, end) as SessionId, job: unpackJob(message.slice(end + 1)) }
}
