// What failed, over a range of time: by kind, service and queue, and the causes themselves. Read from the counts that
// settling keeps by cause (settle/failures.ts), never from attempts, so that it costs the same however many failed.
//
// Counts come in slices: five minutes for the last hours, whole days (UTC) before, up to 30 days. A slice that lies partly
// in the range is counted whole.
import type { Kind } from '../domain/failure.js'
import type { GroupStatus } from '../domain/group.js'
import type { JobId } from '../domain/ids.js'
import { type Queryable, sql } from './database.js'
import { members } from './group-members.js'
import { millis, optional, toDate, toNumber } from './rows.js'

/** At most so many slices are looked at, the newest. */
const MOST_SLICES = 20_000

export interface TimeRange {
  readonly since: Date
  readonly until: Date
}

const IN_RANGE = `
    bucket < $2::timestamptz AND bucket >= $1::timestamptz - interval '1 day' AND last_at >= $1::timestamptz`

// A slice is a day long at most. A limit that the planner does not know keeps it on the index, with or without statistics.
// What was merged by a person counts for the group it was merged into. Counts are summed as floating numbers, which are exact
// enough for whole ones and several times as fast as the decimals that sums of bigints are.
const CAUSES = `
  slice AS MATERIALIZED (
    SELECT fingerprint, queue, sum(failures::double precision) AS failures, sum(deaths::double precision) AS deaths,
      max(last_at) AS last_at, count(*) AS slices
    FROM (
      SELECT fingerprint, queue, failures, deaths, last_at FROM redrive.failure_tally WHERE ${IN_RANGE}
      ORDER BY bucket DESC LIMIT (SELECT $3::integer)
    ) looked GROUP BY fingerprint, queue
  ), own AS MATERIALIZED (
    SELECT fingerprint, coalesce(merged_into, fingerprint) AS head FROM redrive.failure_group
    WHERE fingerprint = ANY (ARRAY(SELECT DISTINCT fingerprint FROM slice))
  ), head AS MATERIALIZED (
    SELECT fingerprint AS head, title, kind, service, status FROM redrive.failure_group
    WHERE fingerprint = ANY (ARRAY(SELECT DISTINCT head FROM own))
  ), cause AS MATERIALIZED (
    SELECT * FROM slice JOIN own USING (fingerprint) JOIN head USING (head)
  )`
// All of the range was looked at, and every cause in it is told: one that has failed since the groups were made, or whose group
// another connection is making just now, has none, and so neither a kind nor a service.
const EXACT = `
    (SELECT coalesce(sum(slices), 0) < $3::integer AND count(DISTINCT fingerprint) = (SELECT count(*) FROM own) FROM slice) AS exact`

const BY_ALL = sql`
  WITH ${CAUSES}
  SELECT ${EXACT}, told.* FROM (SELECT) one LEFT JOIN (
    SELECT kind, service, queue, sum(failures) AS failures, sum(deaths) AS deaths FROM cause GROUP BY kind, service, queue
  ) told ON true`

export interface FailureCount {
  readonly kind: Kind
  readonly service: string | null
  readonly queue: string
  readonly failures: number
  readonly deaths: number
}

/** What a statement tells besides its rows; where there is nothing to tell, it is on a row of nulls. */
interface Told {
  exact: boolean
}

const isExact = ([first]: readonly Told[]): boolean => first?.exact === true

/** `exact`: all of the range was counted. */
export async function failureCounts(
  db: Queryable,
  { since, until }: TimeRange,
): Promise<{ readonly counts: readonly FailureCount[]; readonly exact: boolean }> {
  type Row = Told & Pick<FailureCount, 'kind' | 'service' | 'queue'> & Record<'failures' | 'deaths', unknown>
  const rows = await db.query<Row>(BY_ALL, [since.toISOString(), until.toISOString(), MOST_SLICES])
  return {
    counts: rows
      .filter(row => row.kind !== null)
      .map(({ kind, service, queue, failures, deaths }) => {
        return { kind, service, queue, failures: toNumber(failures), deaths: toNumber(deaths) }
      }),
    exact: isExact(rows),
  }
}

export interface ReasonFilter {
  readonly queue?: string
  readonly kind?: Kind
  readonly service?: string
}

// Only the reasons that are told get a sample: the last failure of the range, in the queue that was asked for. OFFSET 0: the
// counts of a cause are read by their key, whatever the planner thinks of the range.
const REASONS = sql`
  WITH ${CAUSES}, reason AS MATERIALIZED (
    SELECT head, title, kind, service, status, sum(failures) AS failures, sum(deaths) AS deaths, max(last_at) AS last_at,
      json_agg(DISTINCT queue)::text AS queues, sum(sum(failures)) OVER () AS all_failures
    FROM cause
    WHERE ($4::text IS NULL OR queue = $4) AND ($5::redrive.failure_kind IS NULL OR kind = $5::redrive.failure_kind)
      AND ($6::text IS NULL OR service = $6)
    GROUP BY head, title, kind, service, status ORDER BY sum(failures) DESC, head LIMIT $7::integer
  )
  SELECT ${EXACT}, told.* FROM (SELECT) one LEFT JOIN (
  SELECT r.head, r.title, r.kind, r.service, r.status, r.failures, r.deaths, ${millis('r.last_at')} AS last_at, r.queues,
    r.all_failures, last.sample_job, sample.error_type, left(sample.message, 1000) AS message,
    ${millis('sample.finished_at')} AS sample_at
  FROM reason r CROSS JOIN LATERAL (
    SELECT t.sample_job, t.fingerprint FROM ${members('r.head')} CROSS JOIN LATERAL (
      SELECT * FROM redrive.failure_tally t WHERE t.fingerprint = member.id OFFSET 0
    ) t WHERE ($4::text IS NULL OR queue = $4) AND ${IN_RANGE} ORDER BY last_at DESC LIMIT 1
  ) last LEFT JOIN LATERAL (
    SELECT a.error_type, a.message, a.finished_at FROM redrive.attempt a
    WHERE a.job_id = last.sample_job AND a.fingerprint COLLATE "C" = last.fingerprint ORDER BY a.lease DESC LIMIT 1
  ) sample ON true
  ) told ON true
  ORDER BY told.failures DESC, told.head`

export interface FailureReason {
  /** The group of these failures: their fingerprint. */
  readonly group: string
  readonly title: string
  readonly kind: Kind
  readonly service?: string
  readonly status: GroupStatus
  readonly failures: number
  readonly deaths: number
  /** Of all failures that were asked for. */
  readonly share: number
  readonly lastSeen: Date
  readonly queues: readonly string[]
  /** One of them; without its text when its record is past its retention. */
  readonly sample: {
    readonly jobId: JobId
    readonly errorType?: string
    readonly message?: string
    readonly at?: Date
  }
}

interface Row extends Told {
  head: string
  title: string
  kind: Kind
  service: string | null
  status: GroupStatus
  failures: unknown
  deaths: unknown
  last_at: number
  queues: string
  all_failures: unknown
  sample_job: JobId
  error_type: string | null
  message: string | null
  sample_at: number | null
}

/** The most frequent first. */
export async function failureReasons(
  db: Queryable,
  { since, until }: TimeRange,
  { queue, kind, service }: ReasonFilter,
  limit: number,
): Promise<{ readonly items: readonly FailureReason[]; readonly exact: boolean }> {
  const range = [since.toISOString(), until.toISOString(), MOST_SLICES]
  const rows = await db.query<Row>(REASONS, [...range, queue ?? null, kind ?? null, service ?? null, limit])
  const told = rows.filter(row => row.head !== null)
  return {
    items: told.map(row => ({
      group: row.head,
      title: row.title,
      kind: row.kind,
      ...optional('service', row.service),
      status: row.status,
      failures: toNumber(row.failures),
      deaths: toNumber(row.deaths),
      share: toNumber(row.failures) / Math.max(1, toNumber(row.all_failures)),
      lastSeen: toDate(row.last_at),
      queues: JSON.parse(row.queues) as string[],
      sample: {
        jobId: row.sample_job,
        ...optional('errorType', row.error_type),
        ...optional('message', row.message),
        ...optional('at', row.sample_at === null ? null : toDate(row.sample_at)),
      },
    })),
    exact: isExact(rows),
  }
}

// By whole days, which is how finished jobs are counted.
const ENDED = sql`
  SELECT queue, sum(completed) AS completed, sum(cancelled) AS cancelled, sum(failed) AS failed, sum(dead) AS dead
  FROM redrive.tally
  WHERE day >= ($1::timestamptz AT TIME ZONE 'UTC')::date AND day < ($2::timestamptz AT TIME ZONE 'UTC' + interval '1 day' - interval '1 microsecond')::date
  GROUP BY queue ORDER BY queue LIMIT $3::integer`

export interface EndedCount {
  readonly queue: string
  readonly completed: number
  readonly cancelled: number
  /** Attempts that failed. */
  readonly failed: number
  readonly dead: number
}

const MOST_QUEUES = 10_000

/** What ended on the days (UTC) that the range touches. */
export async function endedByDay(db: Queryable, { since, until }: TimeRange): Promise<EndedCount[]> {
  type Counts = { queue: string } & Record<'completed' | 'cancelled' | 'failed' | 'dead', unknown>
  const rows = await db.query<Counts>(ENDED, [since.toISOString(), until.toISOString(), MOST_QUEUES])
  return rows.map(({ queue, completed, cancelled, failed, dead }) => ({
    queue,
    completed: toNumber(completed),
    cancelled: toNumber(cancelled),
    failed: toNumber(failed),
    dead: toNumber(dead),
  }))
}

const NOW = sql`SELECT ${millis('coalesce($1::timestamptz, now())')} AS now`

/** The database's time. */
export async function databaseNow(db: Queryable): Promise<Date> {
  const [row] = await db.query<{ now: number }>(NOW, [db.now()])
  return toDate(toNumber(row?.now))
}
