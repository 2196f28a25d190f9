// What a person wants to know of one group: how fast it fails, whom and what it affects, and how it looks. Queues, job
// names and versions come from the counts, so they are exact; tenants and samples from the newest that are at hand.
import type { JobId } from '../domain/ids.js'
import type { OutcomeType } from '../domain/outcome.js'
import { type Queryable, sql } from './database.js'
import { members } from './group-members.js'
import { millis, optional, toDate } from './rows.js'
import { BUCKET } from './settle/failures.js'

export interface Share {
  readonly value: string
  readonly count: number
}

export interface FailureSample {
  readonly job: JobId
  readonly queue: string
  readonly name: string
  readonly attempt: number
  readonly outcome: OutcomeType
  readonly message: string
  readonly stack?: string
  readonly version?: string
  readonly worker?: string
  readonly at: Date
}

export interface GroupDetail {
  /** Failures a minute, over the last quarter of an hour. */
  readonly perMinute: number
  /** Most failures first, at most twenty of each. */
  readonly queues: readonly Share[]
  readonly names: readonly Share[]
  readonly versions: readonly Share[]
  /** Of its open dead letters and waiting jobs: the newest thousand of each are looked at. */
  readonly tenants: readonly Share[]
  readonly samples: readonly FailureSample[]
}

const MOST_SHARES = 20
const LOOKED_AT = 1_000
const SAMPLES = 5
const RECENT = `interval '15 minutes'`

// OFFSET 0: kept apart, so that the rows of each fingerprint are read by the key, whatever the planner thinks of a join.
const TALLY = `
  tally AS MATERIALIZED (
    SELECT t.* FROM ${members('$1')}
    CROSS JOIN LATERAL (SELECT * FROM redrive.failure_tally t WHERE t.fingerprint = member.id OFFSET 0) t
  )`

const shareOf = (column: string, of: string) => `
  (SELECT '${column}' AS facet, ${column} AS value, ${of} AS count FROM tally WHERE ${column} <> ''
   GROUP BY ${column} ORDER BY count DESC, value LIMIT ${MOST_SHARES})`

const SHARES = sql`
  WITH ${TALLY}, clock AS (
    SELECT coalesce($2::timestamptz, now()) AS now,
      date_bin(${BUCKET}, coalesce($2::timestamptz, now()) - ${RECENT}, timestamptz 'epoch') AS since
  )
  ${shareOf('queue', 'sum(failures)')} UNION ALL ${shareOf('name', 'sum(failures)')}
  UNION ALL ${shareOf('version', 'sum(failures)')} UNION ALL
  SELECT 'perMinute', '', (SELECT coalesce(sum(failures), 0) FROM tally WHERE bucket >= since)
    / (extract(epoch FROM now - since) / 60)::numeric FROM clock`

const TENANTS = sql`
  SELECT tenant AS value, count(*) AS count FROM (
    SELECT affected.tenant FROM ${members('$1')} CROSS JOIN LATERAL (
      (SELECT d.tenant FROM redrive.dead_letter d WHERE d.fingerprint = member.id AND d.status = 'pending'
       ORDER BY d.died_at DESC, d.seq DESC LIMIT (SELECT $2::integer))
      UNION ALL
      (SELECT j.tenant FROM redrive.job j WHERE j.fingerprint = member.id AND NOT j.in_line
       ORDER BY j.fingerprint LIMIT (SELECT $2::integer))
    ) affected
  ) looked WHERE tenant IS NOT NULL GROUP BY tenant ORDER BY count DESC, value LIMIT ${String(MOST_SHARES)}`

const SAMPLE = sql`
  WITH ${TALLY}, job AS MATERIALIZED (
    SELECT id, fingerprint, max(last_at) AS last_at
    FROM tally CROSS JOIN LATERAL (VALUES (first_job), (sample_job)) sample(id) GROUP BY id, fingerprint
    ORDER BY last_at DESC LIMIT $2::integer
  )
  SELECT a.job_id, a.queue, a.name, a.number, a.outcome, a.message, a.stack, s.version, s.worker, ${millis('a.finished_at')} AS at
  FROM job CROSS JOIN LATERAL (
    SELECT * FROM redrive.attempt a
    WHERE a.job_id = job.id AND a.fingerprint COLLATE "C" = job.fingerprint ORDER BY a.lease DESC LIMIT 1
  ) a LEFT JOIN redrive.session s ON s.id = a.session_id
  ORDER BY a.finished_at DESC`

interface SampleRow {
  job_id: JobId
  queue: string
  name: string
  number: number
  outcome: OutcomeType
  message: string | null
  stack: string | null
  version: string | null
  worker: string | null
  at: number
}

export async function groupDetail(db: Queryable, id: string): Promise<GroupDetail> {
  type Shared = { facet: string; value: string; count: string | number }
  const shared = await db.query<Shared>(SHARES, [id, db.now()])
  const tenants = await db.query<Omit<Shared, 'facet'>>(TENANTS, [id, LOOKED_AT])
  const samples = await db.query<SampleRow>(SAMPLE, [id, SAMPLES])
  const toShare = ({ value, count }: Omit<Shared, 'facet'>): Share => ({ value, count: Number(count) })
  const of = (facet: string) => shared.filter(row => row.facet === facet).map(toShare)
  return {
    perMinute: Number(shared.find(row => row.facet === 'perMinute')?.count ?? 0),
    queues: of('queue'),
    names: of('name'),
    versions: of('version'),
    tenants: tenants.map(toShare),
    samples: samples.map(row => ({
      job: row.job_id,
      queue: row.queue,
      name: row.name,
      attempt: row.number,
      outcome: row.outcome,
      message: row.message ?? '',
      at: toDate(row.at),
      ...optional('stack', row.stack),
      ...optional('version', row.version),
      ...optional('worker', row.worker),
    })),
  }
}
