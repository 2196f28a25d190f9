// Not now: a retry, a hold or a return. The job stays live, its lease ends, and what it spent is counted.
import type { Decision } from '../../domain/decision.js'
import type { LiveState } from '../../domain/lifecycle.js'
import type { Settlement } from '../../domain/settlement.js'
import { sql } from '../database.js'
import { RECORD_ATTEMPTS, RECORD_INPUT, record } from './record.js'
import { addToTally } from './tally.js'

export const DEFER = sql`
  WITH input AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1::json) AS t(${RECORD_INPUT}, state redrive.job_state, unlogged boolean,
      refund integer, snoozes integer, holds integer, interruptions integer, lost smallint)
  ), held AS MATERIALIZED (
    SELECT j.*, i.outcome FROM input i JOIN redrive.job j ON j.id = i.id AND j.lease = i.lease AND j.state = 'active'
    WHERE j.id = ANY (ARRAY(SELECT id FROM input))
    FOR UPDATE OF j
  ), deferred AS (
    UPDATE redrive.job j
    SET state = i.state, run_at = coalesce($2::timestamptz, now()) + coalesce(i.delay_ms, 0) * interval '1 millisecond',
        attempt = j.attempt - coalesce(i.refund, 0), snoozes = j.snoozes + coalesce(i.snoozes, 0),
        holds = j.holds + coalesce(i.holds, 0), interruptions = j.interruptions + coalesce(i.interruptions, 0),
        lost = j.lost + coalesce(i.lost, 0), lease = NULL, session_id = NULL, claimed_at = NULL, progress = NULL
    FROM input i
    WHERE j.id = i.id AND j.lease = i.lease AND j.id = ANY (ARRAY(SELECT id FROM held))
    RETURNING i.id, i.lease
  ), moved AS MATERIALIZED (
    SELECT held.* FROM held JOIN deferred ON deferred.id = held.id AND deferred.lease = held.lease
    JOIN input i ON i.id = held.id AND i.lease = held.lease WHERE i.unlogged IS NOT TRUE
  ), logged AS (${RECORD_ATTEMPTS}),
  counted AS (${addToTally('moved', { failed: "outcome IN ('failed', 'timed_out', 'lost')" })})
  SELECT id, lease FROM deferred`

type Deferral = Extract<Decision, { type: 'retry' | 'hold' | 'return' }>

export function deferRow(settlement: Settlement & { decision: Deferral }) {
  const { decision, outcome } = settlement
  return {
    ...record(settlement),
    state: stateAfter(decision),
    unlogged: outcome.type === 'interrupted' && !outcome.started,
    refund: decision.type === 'retry' ? 0 : 1,
    snoozes: decision.type === 'return' && decision.cause === 'snooze' ? 1 : 0,
    holds: decision.type === 'hold' ? 1 : 0,
    interruptions: decision.type === 'return' && decision.cause === 'interruption' ? 1 : 0,
    lost: outcome.type === 'lost' ? 1 : 0,
  }
}

/** What is due at once goes straight back into the line, without waiting for the promoter. */
export function stateAfter(decision: Deferral): LiveState {
  if (decision.type === 'hold') return 'held'
  if (decision.delayMs <= 0) return 'waiting'
  return decision.type === 'retry' ? 'retrying' : 'scheduled'
}
