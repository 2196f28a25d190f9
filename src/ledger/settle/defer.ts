// Not now: a retry, a hold or a return. The job stays live, its lease ends, and what it spent is counted. What is due at
// once is announced (`$6` is the channel): its own worker may have no place for it, or may be leaving.
import type { Decision } from '../../domain/decision.js'
import type { LiveState } from '../../domain/lifecycle.js'
import type { Settlement } from '../../domain/settlement.js'
import { sql } from '../database.js'
import { FENCED } from './complete.js'
import { addToFailures } from './failures.js'
import { RECORD_ATTEMPTS, record } from './record.js'
import { sharedInput, shareFailures } from './shared-failure.js'
import { addToTally } from './tally.js'

/** What a deferral says beyond the attempt's record. */
const WHAT_FOLLOWS: Readonly<Record<keyof ReturnType<typeof whatFollows>, string>> = {
  state: 'redrive.job_state',
  unlogged: 'boolean',
  refund: 'integer',
  snoozes: 'integer',
  holds: 'integer',
  interruptions: 'integer',
  lost: 'smallint',
  held_by: 'text',
}

export const DEFER = sql`
  WITH ${sharedInput(WHAT_FOLLOWS)}, held AS MATERIALIZED (
    SELECT j.* FROM redrive.job j WHERE ${FENCED} FOR UPDATE
  ), deferred AS (
    UPDATE redrive.job j
    SET state = i.state, in_line = i.state = 'waiting', run_at = coalesce($2::timestamptz, now()) + coalesce(i.delay_ms, 0) * interval '1 millisecond',
        attempt = j.attempt - i.refund, snoozes = j.snoozes + i.snoozes, holds = j.holds + i.holds,
        interruptions = j.interruptions + i.interruptions, lost = j.lost + i.lost,
        lease = NULL, session_id = NULL, claimed_at = NULL, progress = NULL, held_by = i.held_by,
        first_claimed_at = CASE WHEN i.unlogged AND j.attempt = i.refund THEN NULL ELSE j.first_claimed_at END,
        fingerprint = coalesce(i.fingerprint, j.fingerprint)
    FROM input i
    WHERE j.id = i.id AND j.lease = i.lease AND j.state = 'active' AND j.id = ANY (ARRAY(SELECT id FROM held))
    RETURNING i.lease, j.queue, j.state
  ), moved AS MATERIALIZED (
    SELECT held.*, i.outcome FROM held JOIN input i ON i.lease = held.lease WHERE i.unlogged IS NOT TRUE
  ), logged AS (${RECORD_ATTEMPTS}),
  counted AS (${addToTally('moved', { failed: "outcome IN ('failed', 'timed_out', 'lost')" })}),
  caused AS (${addToFailures('logged')})
  SELECT lease, (
    SELECT count(pg_notify($6, queue)) FROM (SELECT DISTINCT queue FROM deferred WHERE state = 'waiting') due
    WHERE $6::text IS NOT NULL
  ) AS woken FROM deferred`

type Deferral = Extract<Decision, { type: 'retry' | 'hold' | 'return' }>

export const deferRows = (batch: readonly Settlement[]): object[] =>
  shareFailures(batch.map(record), batch.map(whatFollows))

function whatFollows({ outcome, decision: decided }: Settlement) {
  const decision = decided as Deferral
  return {
    state: stateAfter(decision),
    unlogged: outcome.type === 'interrupted' && !outcome.started,
    refund: decision.type === 'retry' || (decision.type === 'hold' && decision.spent) ? 0 : 1,
    snoozes: decision.type === 'return' && decision.cause === 'snooze' ? 1 : 0,
    holds: decision.type === 'hold' ? 1 : 0,
    interruptions: decision.type === 'return' && decision.cause === 'interruption' ? 1 : 0,
    lost: outcome.type === 'lost' ? 1 : 0,
    held_by: decision.type === 'hold' ? decision.heldBy : undefined,
  }
}

/** What is due at once goes straight back into the line, without waiting for the promoter. */
export function stateAfter(decision: Deferral): LiveState {
  if (decision.type === 'hold') return 'held'
  if (decision.delayMs <= 0) return 'waiting'
  return decision.type === 'retry' ? 'retrying' : 'scheduled'
}
