// What the fleet saw of each service, in slices of time. Each process adds to rows of its own, so nobody waits for
// anybody; what is read are sums by process over a service's window.
import type { ServiceSight } from '../domain/breaker.js'
import { type Queryable, sql } from './database.js'
import { millis } from './rows.js'

/** What one process has to say of one service since it last spoke. Times are milliseconds of the database's clock. */
export interface Sighting extends ServiceSight {
  readonly service: string
  /** How long a slice is. */
  readonly sliceMs: number
}

const ADD = sql`
  INSERT INTO redrive.service_window AS w
    (service, at, source, first_attempts, retries, succeeded, failed, run, run_since, last_success_at)
  SELECT s.service, to_timestamp(floor(date_part('epoch', coalesce($1::timestamptz, now())) * 1000 / s."sliceMs") * s."sliceMs" / 1000),
    $2::uuid, s."firstAttempts", s.retries, s.succeeded, s.failed, s.run, to_timestamp(s."runSince" / 1000),
    to_timestamp(s."lastSuccessAt" / 1000)
  FROM json_to_recordset($3::json) AS s(service text COLLATE "C", "sliceMs" double precision, "firstAttempts" integer,
    retries integer, succeeded integer, failed integer, run integer, "runSince" double precision,
    "lastSuccessAt" double precision)
  ORDER BY s.service
  ON CONFLICT (service, at, source) DO UPDATE
  SET first_attempts = w.first_attempts + excluded.first_attempts, retries = w.retries + excluded.retries,
      succeeded = w.succeeded + excluded.succeeded, failed = w.failed + excluded.failed, run = excluded.run,
      run_since = excluded.run_since, last_success_at = coalesce(excluded.last_success_at, w.last_success_at)`

export async function addSightings(db: Queryable, source: string, sightings: readonly Sighting[]): Promise<void> {
  await db.query(ADD, [db.now(), source, JSON.stringify(sightings)])
}

export interface WindowAsked {
  readonly service: string
  /** Over how long successes and failures are summed, and from when at the earliest… */
  readonly healthMs: number
  readonly since: number
  /** …and over how long attempts. */
  readonly attemptsMs: number
}

/** What one process saw over the windows, and the last it said of its failures in a row. */
export interface SeenBySource extends ServiceSight {
  readonly service: string
  readonly source: string
}

const SEEN = sql`
  SELECT asked.service, seen.* FROM (
    SELECT service, attempts_from, greatest(health_from, to_timestamp(since / 1000)) AS health_from,
      least(health_from, attempts_from) AS earliest
    FROM json_to_recordset($2::json) AS a(service text COLLATE "C", "healthMs" double precision, since double precision,
      "attemptsMs" double precision)
    CROSS JOIN LATERAL (SELECT
      coalesce($1::timestamptz, now()) - "healthMs" * interval '1 millisecond' AS health_from,
      coalesce($1::timestamptz, now()) - "attemptsMs" * interval '1 millisecond' AS attempts_from) windows
  ) asked
  CROSS JOIN LATERAL (
    SELECT w.source::text AS source,
      coalesce(sum(w.first_attempts) FILTER (WHERE w.at > asked.attempts_from), 0)::integer AS first_attempts,
      coalesce(sum(w.retries) FILTER (WHERE w.at > asked.attempts_from), 0)::integer AS retries,
      coalesce(sum(w.succeeded) FILTER (WHERE w.at > asked.health_from), 0)::integer AS succeeded,
      coalesce(sum(w.failed) FILTER (WHERE w.at > asked.health_from), 0)::integer AS failed,
      (array_agg(w.run ORDER BY w.at DESC))[1] AS run,
      ${millis('(array_agg(w.run_since ORDER BY w.at DESC))[1]')} AS run_since,
      ${millis('max(w.last_success_at)')} AS last_success_at
    FROM redrive.service_window w
    WHERE w.service = asked.service AND w.at > asked.earliest
    GROUP BY w.source
  ) seen`

interface Row {
  service: string
  source: string
  first_attempts: number
  retries: number
  succeeded: number
  failed: number
  run: number
  run_since: number | null
  last_success_at: number | null
}

/** One entry for each process that said something of an asked service within its windows. */
export async function seenOf(db: Queryable, asked: readonly WindowAsked[]): Promise<SeenBySource[]> {
  if (asked.length === 0) return []
  const rows = await db.query<Row>(SEEN, [db.now(), JSON.stringify(asked)])
  return rows.map(row => ({
    service: row.service,
    source: row.source,
    firstAttempts: row.first_attempts,
    retries: row.retries,
    succeeded: row.succeeded,
    failed: row.failed,
    run: row.run,
    runSince: row.run_since,
    lastSuccessAt: row.last_success_at,
  }))
}

const FORGET = sql`
  DELETE FROM redrive.service_window WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM redrive.service_window
    WHERE at < coalesce($1::timestamptz, now()) - $2::double precision * interval '1 millisecond'
    ORDER BY at LIMIT $3::integer))
  RETURNING 1`

/** Removes slices older than `ageMs`, in batches; returns how many. `between`: called after each full batch. */
export async function forgetSightings(
  db: Queryable,
  ageMs: number,
  batch: number,
  between: () => Promise<void> = async () => {},
): Promise<number> {
  for (let total = 0; ; ) {
    const { length } = await db.query(FORGET, [db.now(), ageMs, batch])
    total += length
    if (length < batch) return total
    await between()
  }
}
