// The record of a call that was awaited in place (`perform`, `retryable`): it never was in the line, but it ends in the
// same history, with the same attempts, or as the same sort of dead letter.
import type { JobIdentity } from '../domain/job.js'
import type { Settlement } from '../domain/settlement.js'
import { type Database, sql } from './database.js'
import { intoHistory } from './into-history.js'
import { BURY_MOVED, buryRow, DIED_OF } from './settle/bury.js'
import { addToFailures, FAILURE_RETURNED } from './settle/failures.js'
import { RECORD_INPUT, record } from './settle/record.js'
import { addToTally, SHARED_SHARD } from './settle/tally.js'

export interface InProcessEnd {
  readonly job: JobIdentity & { readonly payloadText: string; readonly maxAttempts: number }
  /** How long ago the call was made. */
  readonly tookMs: number
  /** Every attempt that did not succeed, oldest first. */
  readonly attempts: readonly (Omit<Settlement, 'id' | 'lease'> & { number: number; endedMsAgo: number })[]
  readonly end: 'completed' | 'cancelled' | 'dead'
  /** How many attempts were spent. */
  readonly attempt: number
  readonly resultText?: string | undefined
  readonly reason?: string
}

const NOW = 'coalesce($2::timestamptz, now())'

const RECORD = sql`
  WITH attempts AS MATERIALIZED (
    SELECT t.*, nextval('redrive.lease_seq') AS logged_as, ${NOW} - t.ended_ago * interval '1 millisecond' AS ended_at
    FROM json_to_recordset($1::json) AS t(${RECORD_INPUT}, number integer, ended_ago double precision)
  ), moved AS MATERIALIZED (
    SELECT t.id, t.queue, t.name, t.priority, t.payload::json AS payload, t.service, t.tenant, t.user_id, t.project,
      t.unique_key, t.attempt, t.max_attempts, t.ending, t.result, t.reason, NULL::bigint AS lease, 0::smallint AS lost,
      0::smallint AS redrives, ${NOW} - t.took_ms * interval '1 millisecond' AS created_at
    FROM json_to_record($4::json) AS t(id uuid, queue text, name text, priority smallint, payload text, service text,
      tenant text, user_id text, project text, unique_key text, attempt integer, max_attempts smallint, ending text,
      result text, reason text, took_ms double precision)
  ), input AS MATERIALIZED (
    SELECT ${DIED_OF}, logged_as AS lease FROM attempts
    WHERE (SELECT ending FROM moved) = 'dead' ORDER BY ended_at DESC, number DESC LIMIT 1
  ), logged AS (
    INSERT INTO redrive.attempt (job_id, lease, number, round, finished_at, next_run_at, delay_ms, http_status,
      retry_after_ms, outcome, decision, kind, queue, name, reason, because, error_type, error_code, message, stack,
      causes, service, fingerprint)
    SELECT a.id, a.logged_as, a.number, 0, a.ended_at, a.ended_at + a.delay_ms * interval '1 millisecond',
      a.delay_ms, a.http_status, a.retry_after_ms, a.outcome, a.decision, a.kind, m.queue, m.name, a.reason, a.because,
      a.error_type, a.error_code, a.message, a.stack, a.causes::json, coalesce(a.service, m.service), a.fingerprint
    FROM attempts a CROSS JOIN moved m
    RETURNING ${FAILURE_RETURNED}
  ), ${BURY_MOVED}, kept AS (
    INSERT INTO redrive.finished_job (id, state, finished_at, created_at, first_claimed_at, claimed_at, attempt, snoozes,
      holds, interruptions, lost, redrives, max_attempts, priority, queue, name, payload, result, reason, unique_key,
      service, tenant, user_id, project)
    SELECT id, ending::redrive.job_state, ${NOW}, created_at, created_at, created_at, attempt, 0, 0, 0, 0, 0, max_attempts,
      priority, queue, name, payload, result::json, reason, unique_key, service, tenant, user_id, project
    FROM moved WHERE ending <> 'dead'
  ), counted AS (${addToTally('moved', {
    completed: "ending = 'completed'",
    cancelled: "ending = 'cancelled'",
    dead: "ending = 'dead'",
  })}), caused AS (${addToFailures('logged')})
  SELECT id FROM moved`

export async function recordInProcess(db: Database, ended: InProcessEnd): Promise<void> {
  const { job, attempts, end, attempt, resultText, reason, tookMs } = ended
  const rows = attempts.map(({ number, endedMsAgo, ...settlement }) => {
    const full = { ...settlement, id: job.id, lease: '' as Settlement['lease'] }
    const { lease: _, ...row } = settlement.decision.type === 'bury' ? buryRow(full) : record(full)
    return { ...row, number, ended_ago: endedMsAgo }
  })
  const row = {
    id: job.id,
    queue: job.queue,
    name: job.name,
    priority: job.priority,
    payload: job.payloadText,
    service: job.service,
    tenant: job.tenant,
    user_id: job.user,
    project: job.project,
    unique_key: job.uniqueKey,
    attempt,
    max_attempts: job.maxAttempts,
    ending: end,
    result: resultText,
    reason,
    took_ms: tookMs,
  }
  await intoHistory(db, RECORD, [JSON.stringify(rows), db.now(), SHARED_SHARD, JSON.stringify(row)])
}
