// Hands a job to a worker that is known to have stood by a moment ago: one short statement, which asks whether that one may still have
// it. For everything else there is redrive.enqueue_one, which asks who stands by (0018_standby.sql).
import type { SessionId } from '../domain/ids.js'
import type { NewJob } from '../domain/job.js'
import type { Lane } from './claim.js'
import { hot, type Queryable, sql } from './database.js'

/** A session that stands by, and where it hears of its jobs. */
export interface Taker {
  readonly session: SessionId
  readonly channel: string
}

const TAKERS = hot(sql`
  SELECT session_id::text AS session, channel FROM redrive.takers($1::timestamptz, $2, $3, $4::integer)`)

/** So many are told of at most; if there are more, others each time. */
const MOST_TAKERS = 16

/** Who stands by for jobs of this lane; nobody where others wait in line. */
export const takersOf = (db: Queryable, { queue, name }: Lane): Promise<Taker[]> =>
  db.query<Taker>(TAKERS, [db.now(), queue, name, MOST_TAKERS])

// INVARIANT: as for a claim, a session that has ended or lapsed is given nothing, and of a paused queue nothing is given. Whoever listens on a
// channel has the lock of its name: if we can have it, nobody does any more (databases/pg-listener.ts).
// What is said is what redrive.packed says of such a job; `$11` and `$12` are those parts of it that are known here.
const statement = (columns = '', values = '') =>
  hot(sql`
    INSERT INTO redrive.job AS j (id, state, queue, name, service, max_attempts, priority, payload, run_at, created_at, attempt, lease,
                                  session_id, claimed_at, first_claimed_at, line${columns})
    SELECT $4::uuid, 'active', $5, $6, $7, $8::smallint, $9::smallint, $10::json, now, now, 1, nextval('redrive.lease_seq'),
           $2::bigint, now, now, redrive.next_line($9::smallint)${values}
    FROM (SELECT coalesce($1::timestamptz, now()) AS now) clock
    WHERE EXISTS (SELECT FROM redrive.standby b WHERE b.session_id = $2::bigint AND b.queue = $5 AND b.name = $6
                  AND b.channel = $3 AND b.seen_at > coalesce($1::timestamptz, now()) - interval '5 seconds')
      AND EXISTS (SELECT FROM redrive.session s WHERE s.id = $2::bigint AND s.ended_at IS NULL
                  AND s.expires_at > coalesce($1::timestamptz, now()))
      AND NOT EXISTS (SELECT FROM redrive.queue q WHERE q.name = $5 AND q.paused_at IS NOT NULL)
      AND NOT pg_try_advisory_xact_lock_shared(hashtextextended($3, 0))
    RETURNING pg_notify($3, concat($2::bigint, E'\x1e', j.ctid, E'\x1f', j.id, E'\x1f', j.lease, E'\x1f', j.line, $11::text,
                                   redrive.millis(j.created_at), E'\x1f', redrive.millis(j.created_at), $12::text))`)

const HAND_OVER = statement()
const HAND_OVER_SCOPED = statement(', tenant, user_id, project, trace', ', $13, $14, $15, $16')

/** True: it has the job, and is told so. False: it does not stand by any more, and nothing was written. */
export async function handOver(db: Queryable, job: NewJob, { session, channel }: Taker): Promise<boolean> {
  const { id, queue, name, service = null, maxAttempts = null, priority, payloadText } = job
  const { tenant = null, user = null, project = null, trace = null } = job
  const isScoped = (tenant ?? user ?? project ?? trace) !== null
  const scope = isScoped ? [tenant, user, project, trace] : NO_SCOPE
  const told = isScoped ? scope.map(text => (text === null ? '' : JSON.stringify(text))).join('\x1f') : '\x1f\x1f\x1f'
  const beforeTimes = `\x1f${queue}\x1f${name}\x1f${priority}\x1f1\x1f`
  // Not due at another time than it was made, no unique key, held by nobody, nothing in its past.
  const afterTimes = `\x1f\x1f${maxAttempts ?? ''}\x1f${service ?? ''}\x1f\x1f${told}\x1f\x1f\x1f${payloadText}`
  const lane = [queue, name, service, maxAttempts, priority]
  const params = [db.now(), session, channel, id, ...lane, payloadText, beforeTimes, afterTimes, ...scope]
  return (await db.query(isScoped ? HAND_OVER_SCOPED : HAND_OVER, params)).length > 0
}

const NO_SCOPE: readonly string[] = []
