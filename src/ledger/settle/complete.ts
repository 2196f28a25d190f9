// Success: the job leaves the live table for the history in one statement, and a dead letter it came back from is
// recovered.
import type { Lease } from '../../domain/ids.js'
import type { Settlement } from '../../domain/settlement.js'
import { type Database, hot, sql } from '../database.js'
import { intoHistory } from '../into-history.js'
import { claimsOf, leasesOf, type Refused } from './refused.js'

/** Columns that a finished job keeps of a live one. */
export const KEPT = `id, created_at, first_claimed_at, claimed_at, session_id, attempt, snoozes, holds, interruptions,
  lost, redrives, max_attempts, priority, queue, name, payload, unique_key, service, tenant, user_id, project`

// INVARIANT: a row is touched only if it still carries the lease of this very claim. `$4` are the leases: each is given
// once, so it names its claim. `$5` are the jobs they are said to belong to.
export const FENCED = `j.id = ANY ($5::uuid[]) AND j.lease = ANY ($4::bigint[]) AND j.state = 'active'`

const FINISH = hot(sql`
  SELECT redrive.finish($1::timestamptz, $2::bigint, $3::tid[], $4::bigint[], $5, $6::json) AS refused`)

/** Returns the leases that were refused. */
export async function complete(db: Database, batch: readonly Settlement[], shard: string): Promise<Set<Lease>> {
  const { places, leases, ids } = claimsOf(batch)
  return leasesOf(await intoHistory<Refused>(db, FINISH, [db.now(), shard, places, leases, ids, resultsOf(batch)]))
}

/** Null where nothing was returned: most jobs return nothing. */
function resultsOf(batch: readonly Settlement[]): string | null {
  const results = batch.map(({ decision }) => (decision.type === 'complete' ? decision.result : null))
  return results.every(result => result === null) ? null : JSON.stringify(results)
}
