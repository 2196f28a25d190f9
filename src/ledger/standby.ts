// Workers that stand by for jobs to be handed over as they are enqueued (0018_standby.sql), from their side. Whoever stands by is
// told of its jobs on a channel that it listens on; what it did not hear, it finds by looking.
import type { SessionId } from '../domain/ids.js'
import type { ClaimedJob } from '../domain/job.js'
import { type Lane, unpackJob } from './claim.js'
import { type Database, sql } from './database.js'

const RING = sql`SELECT pg_notify($1, '')`

/** Says nothing on a channel: whoever hears it knows that it can hear. */
export async function ring(db: Database, channel: string): Promise<void> {
  await db.query(RING, [channel])
}

const STAND_BY = sql`
  WITH before AS (DELETE FROM redrive.standby WHERE session_id = $1::bigint)
  INSERT INTO redrive.standby (queue, name, spot, session_id, channel)
  SELECT l.queue, l.name, place.spot + turn, $1::bigint, $2
  FROM (SELECT random() AS spot) place CROSS JOIN json_to_recordset($3::json) AS l(queue text, name text) CROSS JOIN generate_series(0, 1) AS turn`

/** From now on, jobs of these lanes may be handed to this session; of none: no more of them. */
export async function standBy(
  db: Database,
  session: SessionId,
  channel: string,
  lanes: readonly Lane[],
): Promise<void> {
  await db.query(STAND_BY, [session, channel, JSON.stringify(lanes)])
}

/** SQL: these sessions are handed nothing any more. */
export const noStandby = (sessions: string): string =>
  `DELETE FROM redrive.standby WHERE session_id IN (SELECT id FROM ${sessions})`

/** What was handed over stands near the front of its line, which was empty then; no more of it is looked at than this. */
const UNHEARD = sql`
  SELECT redrive.packed(j.place, j.job) AS jobs
  FROM json_to_recordset($2::json) AS l(queue text COLLATE "C", name text COLLATE "C")
  CROSS JOIN LATERAL (
    SELECT j.ctid AS place, j AS job, j.session_id, j.state, j.claimed_at FROM redrive.job j
    WHERE j.queue = l.queue AND j.name = l.name AND j.in_line ORDER BY j.line LIMIT 10000
  ) j
  WHERE j.session_id = $1::bigint AND j.state = 'active'
    AND j.claimed_at <= coalesce($3::timestamptz, now()) - $4::double precision * interval '1 millisecond'`

/** What this session has held for so long, heard of or not. */
export async function heldFor(
  db: Database,
  session: SessionId,
  lanes: readonly Lane[],
  ms: number,
): Promise<ClaimedJob[]> {
  const rows = await db.query<{ jobs: string }>(UNHEARD, [session, JSON.stringify(lanes), db.now(), ms])
  return rows.map(({ jobs }) => unpackJob(jobs))
}

const AFTER_SESSION = '\x1e'

/** What was said on a channel: nothing, or whose job it is and the job. */
export function handedOver(message: string): { session: SessionId; job: ClaimedJob } | undefined {
  const end = message.indexOf(AFTER_SESSION)
  if (end < 0) return undefined
  return { session: message.slice(0, end) as SessionId, job: unpackJob(message.slice(end + 1)) }
}
