// Every attempt of a job that is on record, oldest first.

import type { DecisionType } from '../domain/decision.js'
import type { Cause, Kind } from '../domain/failure.js'
import type { JobId } from '../domain/ids.js'
import type { OutcomeType } from '../domain/outcome.js'
import { type Queryable, sql } from './database.js'
import { millis, optional, toDate, toJson } from './rows.js'

export interface Attempt {
  readonly number: number
  /** 0 for the job's first life, 1 after its first redrive, … */
  readonly round: number
  readonly outcome: OutcomeType
  readonly decision: DecisionType
  readonly reason: string
  readonly kind?: Kind
  readonly because?: string
  readonly errorType?: string
  readonly errorCode?: string
  readonly message?: string
  readonly stack?: string
  readonly causes: readonly Cause[]
  readonly httpStatus?: number
  readonly retryAfterMs?: number
  readonly service?: string
  readonly fingerprint?: string
  readonly delayMs?: number
  readonly nextRunAt?: Date
  readonly worker?: string
  readonly startedAt?: Date
  readonly finishedAt: Date
  /** What the attempt's own worker reported after it had been declared lost. Refused, but remembered. */
  readonly staleOutcome?: OutcomeType
}

const OF_JOB = sql`
  SELECT a.number, a.round, a.outcome, a.decision, a.reason, a.kind, a.because, a.error_type, a.error_code, a.message,
    a.stack, a.causes::text AS causes, a.http_status, a.retry_after_ms, a.service, a.fingerprint, a.delay_ms,
    a.stale_outcome, s.worker, ${millis('a.next_run_at')} AS next_run_at, ${millis('a.started_at')} AS started_at,
    ${millis('a.finished_at')} AS finished_at
  FROM redrive.attempt a LEFT JOIN redrive.session s ON s.id = a.session_id
  WHERE a.job_id = $1::uuid ORDER BY a.lease LIMIT $2::integer`

interface Row {
  number: number
  round: number
  outcome: OutcomeType
  decision: DecisionType
  reason: string
  kind: Kind | null
  because: string | null
  error_type: string | null
  error_code: string | null
  message: string | null
  stack: string | null
  causes: string | null
  http_status: number | null
  retry_after_ms: string | number | null
  service: string | null
  fingerprint: string | null
  delay_ms: string | number | null
  stale_outcome: OutcomeType | null
  worker: string | null
  next_run_at: number | null
  started_at: number | null
  finished_at: number
}

const toAttempt = (row: Row): Attempt => ({
  number: row.number,
  round: row.round,
  outcome: row.outcome,
  decision: row.decision,
  reason: row.reason,
  causes: (toJson(row.causes) ?? []) as unknown as Cause[],
  finishedAt: toDate(row.finished_at),
  ...optional('kind', row.kind),
  ...optional('because', row.because),
  ...optional('errorType', row.error_type),
  ...optional('errorCode', row.error_code),
  ...optional('message', row.message),
  ...optional('stack', row.stack),
  ...optional('httpStatus', row.http_status),
  ...optional('retryAfterMs', row.retry_after_ms === null ? null : Number(row.retry_after_ms)),
  ...optional('service', row.service),
  ...optional('fingerprint', row.fingerprint),
  ...optional('delayMs', row.delay_ms === null ? null : Number(row.delay_ms)),
  ...optional('nextRunAt', row.next_run_at === null ? null : toDate(row.next_run_at)),
  ...optional('worker', row.worker),
  ...optional('startedAt', row.started_at === null ? null : toDate(row.started_at)),
  ...optional('staleOutcome', row.stale_outcome),
})

const MOST = 1_000

export async function attemptsOf(db: Queryable, id: JobId): Promise<Attempt[]> {
  return (await db.query<Row>(OF_JOB, [id, MOST])).map(toAttempt)
}
