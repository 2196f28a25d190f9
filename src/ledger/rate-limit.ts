// Schedules of rate limits, one a limit and key: taking slots for jobs that were claimed, and letting held jobs go.
import type { Pace } from '../domain/rate-limit.js'
import { type Database, type Queryable, sql } from './database.js'

/** What several jobs of one limit and key ask for. Those that were held come before those that come for the first time. */
export interface RateRequest {
  readonly name: string
  readonly key: string
  readonly pace: Pace
  readonly released: number
  readonly fresh: number
}

/** Times are milliseconds of the database's clock. */
export interface RateAnswer {
  readonly name: string
  readonly key: string
  readonly now: number
  readonly firstAt: number
  /** As it is in force now: a person may have changed it. */
  readonly spacingMs: number
  readonly lateMs: number
  /** How many got a slot. */
  readonly given: number
  /** The next slot that nobody has. */
  readonly nextAt: number
  /** About when the first job that got none has its turn. */
  readonly turnAt: number
}

/** What a job is held by, as its row says it. A limit's name has no line break. */
export const heldByRate = (name: string, key: string): string => `${name}\n${key}`

const ACQUIRE = sql`SELECT * FROM redrive.acquire_rate($1::timestamptz, $2::double precision, $3::double precision, $4::json)`

interface AnswerRow {
  of_name: string
  of_key: string
  now_at: number
  first_at: number
  spacing: number
  late: number
  given: number
  next_at: number
  turn_at: number
}

/** `horizonMs`: how far ahead slots are given; `windowMs`: how far ahead held jobs will be let go. */
export async function acquireRate(
  db: Queryable,
  requests: readonly RateRequest[],
  { horizonMs, windowMs }: { horizonMs: number; windowMs: number },
): Promise<RateAnswer[]> {
  const asked = requests.map(({ pace, ...request }) => ({
    ...request,
    spacing: pace.spacingMs,
    saved: pace.savedMs,
    late: pace.lateMs,
  }))
  const rows = await db.query<AnswerRow>(ACQUIRE, [db.now(), horizonMs, windowMs, JSON.stringify(asked)])
  return rows.map(row => ({
    name: row.of_name,
    key: row.of_key,
    now: row.now_at,
    firstAt: row.first_at,
    spacingMs: row.spacing,
    lateMs: row.late,
    given: row.given,
    nextAt: row.next_at,
    turnAt: row.turn_at,
  }))
}

const RELEASE = sql`
  SELECT * FROM redrive.release_rate($1::timestamptz, $2, $3::double precision, $4::double precision, $5::integer, $6::integer)`

export interface Release {
  /** Where jobs were let go. */
  readonly queues: readonly string[]
  /** How long until there may be more to let go; undefined: nothing is held. */
  readonly nextInMs: number | undefined
}

export interface ReleaseOptions {
  readonly channel: string | null
  /** How far ahead of their slots jobs are let go. */
  readonly windowMs: number
  /** The least time between two looks at a key: what was let go needs it to be taken. */
  readonly pauseMs: number
  readonly mostKeys: number
  /** At most so many of one key. */
  readonly mostJobs: number
}

export async function releaseRate(db: Database, options: ReleaseOptions): Promise<Release> {
  const { channel, windowMs, pauseMs, mostKeys, mostJobs } = options
  const params = [db.now(), channel, windowMs, pauseMs, mostKeys, mostJobs]
  const rows = await db.query<{ of_queue: string | null; next_in: number | null }>(RELEASE, params)
  return {
    queues: rows.flatMap(({ of_queue }) => (of_queue === null ? [] : [of_queue])),
    nextInMs: rows.at(-1)?.next_in ?? undefined,
  }
}

const FORGET = sql`
  DELETE FROM redrive.rate_limit WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM redrive.rate_limit
    WHERE release_at IS NULL AND next_at < coalesce($1::timestamptz, now()) - $2::double precision * interval '1 millisecond'
      AND next_at + saved_ms * interval '1 millisecond' < coalesce($1::timestamptz, now())
    LIMIT $3::integer FOR UPDATE SKIP LOCKED))
  RETURNING 1`

/** Removes schedules that were not used for so long and have nothing left to remember; returns how many. */
export async function forgetRates(
  db: Queryable,
  unusedMs: number,
  batch: number,
  between: () => Promise<void> = async () => {},
): Promise<number> {
  for (let total = 0; ; await between()) {
    const { length } = await db.query(FORGET, [db.now(), unusedMs, batch])
    total += length
    if (length < batch) return total
  }
}
