// What is written down about an attempt that did not simply succeed: the same columns whatever was decided, named
// once for the statements that take them in (`RECORD_INPUT`) and store them (`RECORD_ATTEMPTS`).
import type { Failure } from '../../domain/failure.js'
import { cap, LIMITS } from '../../domain/limits.js'
import type { Outcome } from '../../domain/outcome.js'
import type { Settlement } from '../../domain/settlement.js'
import { FAILURE_RETURNED } from './failures.js'

export const RECORD_INPUT = `
  id uuid, lease bigint, outcome redrive.attempt_outcome, decision redrive.decision, reason text,
  kind redrive.failure_kind, because text, error_type text, error_code text, message text, stack text, causes text,
  http_status smallint, retry_after_ms bigint, service text, fingerprint text COLLATE "C", delay_ms bigint`

/** Needs CTEs `moved` (the job as it was while active: id, attempt, redrives, …) and `input`; `$2` is now. */
export const RECORD_ATTEMPTS = `
  INSERT INTO redrive.attempt (job_id, lease, number, round, started_at, finished_at, next_run_at, delay_ms, session_id,
    http_status, retry_after_ms, outcome, decision, kind, queue, name, reason, because, error_type, error_code, message,
    stack, causes, service, fingerprint)
  SELECT m.id, i.lease, m.attempt, m.redrives, m.claimed_at, coalesce($2::timestamptz, now()),
    coalesce($2::timestamptz, now()) + i.delay_ms * interval '1 millisecond', i.delay_ms, m.session_id,
    i.http_status, i.retry_after_ms, i.outcome, i.decision, i.kind, m.queue, m.name, i.reason, i.because, i.error_type,
    i.error_code, i.message, i.stack, i.causes::json, coalesce(i.service, m.service), i.fingerprint
  FROM moved m JOIN input i ON i.id = m.id AND i.lease IS NOT DISTINCT FROM m.lease
  RETURNING ${FAILURE_RETURNED}`

const SHORT_CHARS = 500

export const failureOf = (outcome: Outcome): Failure | undefined => ('failure' in outcome ? outcome.failure : undefined)

/** One attempt's record, by the columns of RECORD_INPUT. */
export type Recorded = ReturnType<typeof record>

export function record({ id, lease, outcome, decision }: Settlement) {
  const failure = failureOf(outcome)
  return {
    id,
    lease,
    outcome: outcome.type,
    decision: decision.type,
    reason: cap(decision.reason, LIMITS.reasonChars),
    delay_ms: 'delayMs' in decision ? Math.round(decision.delayMs) : undefined,
    kind: failure?.kind,
    because: text(failure?.because, SHORT_CHARS),
    error_type: text(failure?.type, SHORT_CHARS),
    error_code: text(failure?.code, SHORT_CHARS),
    message: text(failure?.message, LIMITS.messageChars),
    stack: text(failure?.stack, LIMITS.stackChars),
    causes: failure && failure.causes.length > 0 ? JSON.stringify(failure.causes) : undefined,
    http_status: failure?.httpStatus,
    retry_after_ms: failure?.retryAfterMs === undefined ? undefined : Math.round(failure.retryAfterMs),
    service: text(failure?.service, LIMITS.nameChars),
    fingerprint: failure?.fingerprint,
  }
}

const text = (value: string | undefined, chars: number) => (value === undefined ? undefined : cap(value, chars))
