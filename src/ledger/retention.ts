// What may go, and when: history after its days, attempts of jobs that are neither live nor dead, resolved dead letters,
// ended sessions, old runs. Open dead letters never (invariant 8). Small batches, so that an ill database is not made
// worse (pitfall 19).
import type { JobId } from '../domain/ids.js'
import type { FinishedState } from '../domain/lifecycle.js'
import { type Database, type Queryable, type Statement, sql } from './database.js'
import { millis } from './rows.js'

const ENSURE_DAYS = sql`
  SELECT redrive.ensure_history_day((coalesce($1::timestamptz, now()) AT TIME ZONE 'UTC')::date + ahead)
  FROM generate_series(0, $2::integer) ahead`

/** Makes the history partitions of today and some days ahead. */
export async function ensureHistoryDays(db: Queryable, ahead: number): Promise<void> {
  await db.query(ENSURE_DAYS, [db.now(), ahead])
}

const DROP_DAYS = sql`
  SELECT redrive.drop_history_before((coalesce($1::timestamptz, now()) AT TIME ZONE 'UTC')::date - $2::integer) AS dropped`
const DELETE_STRAYS = sql`
  DELETE FROM redrive.finished_job_default WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM redrive.finished_job_default
    WHERE finished_at < ((coalesce($1::timestamptz, now()) AT TIME ZONE 'UTC')::date - $2::integer)::timestamp AT TIME ZONE 'UTC'
    LIMIT $3::integer))
  RETURNING 1`
// A day whose partition could not be dropped now stays counted until it is.
const FORGET_DAYS = sql`
  WITH forgotten AS (
    DELETE FROM redrive.tally WHERE day < (coalesce($1::timestamptz, now()) AT TIME ZONE 'UTC')::date - $2::integer
      AND to_regclass('redrive.finished_job_' || to_char(day, 'YYYYMMDD')) IS NULL
    RETURNING completed + cancelled AS jobs
  )
  SELECT coalesce(sum(jobs), 0) AS jobs FROM forgotten`
const FOLD_TALLY = sql`
  WITH ended AS (
    DELETE FROM redrive.tally WHERE shard <> 0
      AND NOT EXISTS (SELECT FROM redrive.session s WHERE s.id = shard / 16 AND s.ended_at IS NULL)
    RETURNING queue, day, completed, cancelled, failed, dead
  )
  INSERT INTO redrive.tally (queue, day, shard, completed, cancelled, failed, dead)
  SELECT queue, day, 0, sum(completed), sum(cancelled), sum(failed), sum(dead) FROM ended GROUP BY queue, day
  ORDER BY queue, day
  ON CONFLICT (queue, day, shard) DO UPDATE
  SET completed = tally.completed + excluded.completed, cancelled = tally.cancelled + excluded.cancelled,
      failed = tally.failed + excluded.failed, dead = tally.dead + excluded.dead`

/** Removes finished jobs of days before the last `keepDays` whole ones; returns how many jobs. */
export async function dropHistory(
  db: Database,
  keepDays: number,
  batch: number,
  between: () => Promise<void> = async () => {},
): Promise<number> {
  await db.query(FOLD_TALLY)
  await db.query(DROP_DAYS, [db.now(), keepDays])
  await inBatches(batch, async () => (await db.query(DELETE_STRAYS, [db.now(), keepDays, batch])).length, between)
  const [forgotten] = await db.query<{ jobs: string | number }>(FORGET_DAYS, [db.now(), keepDays])
  return Number(forgotten?.jobs)
}

const AGED = (alias: string) =>
  `${alias} < coalesce($1::timestamptz, now()) - $2::double precision * interval '1 millisecond'`

const FORGET_ATTEMPTS = sql`
  DELETE FROM redrive.attempt WHERE ctid = ANY (ARRAY(
    SELECT a.ctid FROM redrive.attempt a
    WHERE ${AGED('a.finished_at')}
      AND NOT EXISTS (SELECT FROM redrive.job j WHERE j.id = a.job_id)
      AND NOT EXISTS (SELECT FROM redrive.dead_letter d WHERE d.id = a.job_id)
    ORDER BY a.finished_at LIMIT $3::integer))
  RETURNING 1`
const EXPIRE_DEAD_LETTERS = sql`
  WITH expired AS (
    DELETE FROM redrive.dead_letter WHERE id = ANY (ARRAY(
      SELECT id FROM redrive.dead_letter
      WHERE resolved_at IS NOT NULL AND status IN ('recovered', 'permanently_failed') AND ${AGED('resolved_at')}
      ORDER BY resolved_at LIMIT $3::integer FOR UPDATE SKIP LOCKED))
    RETURNING id, queue
  ), noted AS (
    INSERT INTO redrive.audit (at, actor, action, target_type, target, after)
    SELECT coalesce($1::timestamptz, now()), 'retention', 'expire', 'queue', queue, json_build_object('removed', count(*))
    FROM expired GROUP BY queue
  )
  SELECT id FROM expired`
const FORGET_SESSIONS = sql`
  DELETE FROM redrive.session WHERE id = ANY (ARRAY(
    SELECT s.id FROM redrive.session s WHERE s.cleared_at IS NOT NULL AND ${AGED('s.ended_at')}
    ORDER BY s.id LIMIT $3::integer))
  RETURNING 1`
const FORGET_RUNS = sql`
  DELETE FROM redrive.recovery_run WHERE id = ANY (ARRAY(
    SELECT id FROM redrive.recovery_run WHERE status <> 'running' AND ${AGED('finished_at')} ORDER BY id LIMIT $3::integer))
  RETURNING 1`

// Ids begin with the time at which they were made, so that those which may go are at the start. They are gone through in
// their order, and once: what a live job or a dead letter still needs is passed by. Each is looked up by itself, not joined: a
// plan would depend on statistics (pitfall 24).
const THEN = millis(`(coalesce($1::timestamptz, now()) - $2::double precision * interval '1 millisecond')`)
const FIRST_ID_THEN = `rpad(lpad(to_hex((${THEN})::bigint), 12, '0'), 32, '0')::uuid`
const FORGET_PAYLOADS = sql`
  WITH looked AS MATERIALIZED (
    SELECT id FROM redrive.payload
    WHERE id > coalesce($4::uuid, '00000000-0000-0000-0000-000000000000') AND id < ${FIRST_ID_THEN}
    ORDER BY id LIMIT (SELECT $3::integer)
  ), removed AS (
    DELETE FROM redrive.payload WHERE id = ANY (ARRAY(
      SELECT l.id FROM looked l
      WHERE (SELECT j.id FROM redrive.job j WHERE j.id = l.id) IS NULL
        AND (SELECT d.id FROM redrive.dead_letter d WHERE d.id = l.id) IS NULL
        AND (SELECT f.id FROM redrive.finished_job f WHERE f.id = l.id LIMIT 1) IS NULL))
  )
  SELECT id FROM looked ORDER BY id LIMIT 1 OFFSET $3::integer - 1`

/** Removes payloads that lie apart and are nobody's any more, of jobs that were made longer than `ageMs` ago. */
export async function forgetPayloads(
  db: Database,
  ageMs: number,
  batch: number,
  between: () => Promise<void> = async () => {},
): Promise<void> {
  for (let after: JobId | null = null; ; ) {
    const [last]: { id: JobId }[] = await db.query(FORGET_PAYLOADS, [db.now(), ageMs, batch, after])
    if (!last) return
    after = last.id
    await between()
  }
}

/** `between`: called after each batch, for whoever must show that it is alive. */
const forget =
  (statement: Statement) =>
  (db: Database, ageMs: number, batch: number, between: () => Promise<void> = async () => {}) =>
    inBatches(batch, async () => (await db.query(statement, [db.now(), ageMs, batch])).length, between)

export const forgetAttempts = forget(FORGET_ATTEMPTS)
export const expireDeadLetters = forget(EXPIRE_DEAD_LETTERS)
export const forgetSessions = forget(FORGET_SESSIONS)
export const forgetRuns = forget(FORGET_RUNS)

// The history has no index but the one on ids: it is gone through in their order, so many at a time, whatever they are, so that a
// statement is as short for a queue with three jobs as for one with a million.
const CLEAN_FINISHED = sql`
  WITH looked AS MATERIALIZED (
    SELECT id, queue, state, finished_at FROM redrive.finished_job
    WHERE id > coalesce($6::uuid, '00000000-0000-0000-0000-000000000000') ORDER BY id LIMIT (SELECT $3::integer)
  ), removed AS (
    DELETE FROM redrive.finished_job f
    WHERE f.queue = $4 AND f.state = $5::redrive.job_state AND ${AGED('f.finished_at')} AND f.id = ANY (ARRAY(
      SELECT id FROM looked WHERE queue = $4 AND state = $5::redrive.job_state AND ${AGED('finished_at')}))
    RETURNING f.id, f.queue, f.state, (f.finished_at AT TIME ZONE 'UTC')::date AS day
  ), counted AS (
    INSERT INTO redrive.tally (queue, day, shard, completed, cancelled)
    SELECT queue, day, 0, -count(*) FILTER (WHERE state = 'completed'), -count(*) FILTER (WHERE state = 'cancelled')
    FROM removed GROUP BY queue, day ORDER BY queue, day
    ON CONFLICT (queue, day, shard) DO UPDATE
    SET completed = tally.completed + excluded.completed, cancelled = tally.cancelled + excluded.cancelled
  ), emptied AS (
    DELETE FROM redrive.payload p WHERE p.id = ANY (ARRAY(SELECT id FROM removed))
      AND NOT EXISTS (SELECT FROM redrive.dead_letter d WHERE d.id = p.id)
  )
  SELECT (SELECT count(*) FROM removed)::integer AS removed, (SELECT count(*) FROM looked)::integer AS looked,
    (SELECT id FROM looked ORDER BY id DESC LIMIT 1) AS last`

/**
 * Removes a queue's finished jobs that ended longer than `graceMs` ago from among the next `batch` of the history after `after`;
 * returns how many, and where to go on. Undefined: that was all.
 */
export async function cleanFinished(
  db: Queryable,
  queue: string,
  state: FinishedState,
  graceMs: number,
  batch: number,
  after: JobId | null = null,
): Promise<{ readonly removed: number; readonly next: JobId | undefined }> {
  type Row = { removed: number; looked: number; last: JobId | null }
  const [row] = await db.query<Row>(CLEAN_FINISHED, [db.now(), graceMs, batch, queue, state, after])
  const { removed = 0, looked = 0, last = null } = row ?? {}
  return { removed, next: looked < batch || last === null ? undefined : last }
}

async function inBatches(batch: number, remove: () => Promise<number>, between: () => Promise<void>): Promise<number> {
  let total = 0
  for (;;) {
    const removed = await remove()
    total += removed
    if (removed < batch) return total
    await between()
  }
}
