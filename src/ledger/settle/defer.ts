// Not now: a retry, a hold or a return. The job stays live, its lease ends, and what it spent is counted. What is due at
// once is announced: its own worker may have no place for it, or may be leaving. The statement is the
// function `defer` (0014_failed_batches.sql).
import type { Decision } from '../../domain/decision.js'
import type { Lease } from '../../domain/ids.js'
import type { LiveState } from '../../domain/lifecycle.js'
import type { Settlement } from '../../domain/settlement.js'
import { type Database, hot, sql } from '../database.js'
import { wakeChannel } from '../wake-channel.js'
import { record } from './record.js'
import { claimsOf, leasesOf, type Refused } from './refused.js'
import { paramsOf, shareFailures } from './shared-failure.js'

const DEFER = hot(sql`
  SELECT redrive.defer($1::timestamptz, $2, $3::bigint, $4::tid[], $5::bigint[], $6::uuid[], $7::integer[], $8::json, $9::json,
    $10::json, $11::bigint[]) AS refused`)

/** Returns the leases that were refused. */
export async function defer(db: Database, batch: readonly Settlement[], shard: string): Promise<Set<Lease>> {
  const ends = shareFailures(batch.map(record), batch.map(whatFollows))
  const { likes, shapes, messages, reasons } = paramsOf(ends)
  const { places, leases, ids } = claimsOf(batch)
  const channel = wakeChannel(db)
  const params = [db.now(), channel, shard, places, leases, ids, likes, shapes, messages, reasons, ends.delays ?? null]
  return leasesOf(await db.query<Refused>(DEFER, params))
}

type Deferral = Extract<Decision, { type: 'retry' | 'hold' | 'return' }>

/** What a deferral says beyond the attempt's record. */
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
