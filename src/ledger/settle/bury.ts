// Death: the job's row and its dead letter change places in one statement (invariant 1). A dead letter that was being
// redriven is the same one again: reopened with the new failure, its notes, payload and history kept. What workers bury is
// in the function `bury` (0014_failed_batches.sql); the text here is for those who bury jobs that nobody ran.
import type { Failure } from '../../domain/failure.js'
import type { Lease } from '../../domain/ids.js'
import type { Settlement } from '../../domain/settlement.js'
import { type Database, hot, sql } from '../database.js'
import { type Recorded, record } from './record.js'
import { claimsOf, leasesOf, type Refused } from './refused.js'
import { paramsOf, shareFailures } from './shared-failure.js'

/** What a dead letter takes from the record of the attempt it died of. */
export const DIED_OF = 'id, outcome, kind, reason, message, fingerprint, service, http_status'

const LETTERS = (jobs: string) => `
  INSERT INTO redrive.dead_letter AS d (id, lease, died_at, updated_at, job_created_at, total_attempts, max_attempts, lost,
    redrives, job_priority, http_status, outcome, kind, queue, name, payload, reason, message, fingerprint, service,
    unique_key, tenant, user_id, project)
  SELECT m.id, i.lease, coalesce($2::timestamptz, now()), coalesce($2::timestamptz, now()), m.created_at, m.attempt,
    m.max_attempts, m.lost + (i.outcome = 'lost')::integer, m.redrives, m.priority, i.http_status, i.outcome, i.kind,
    m.queue, m.name, m.payload, i.reason, i.message, i.fingerprint, coalesce(i.service, m.service), m.unique_key,
    m.tenant, m.user_id, m.project
  FROM moved m JOIN input i ON i.id = m.id AND (m.lease IS NULL OR i.lease = m.lease) WHERE ${jobs}`

/**
 * Needs CTEs `moved` (the job as it was, without a lease if it was not running) and `input` (`DIED_OF` and the lease
 * of that attempt); `$2` is now. Only a job that was sent back can have a dead letter already, and looking for one costs.
 * A payload is written once: a job that comes back has the one that its dead letter kept.
 */
export const BURY_MOVED = `
  buried AS (${LETTERS('m.redrives = 0')}), reopened AS (${LETTERS('m.redrives > 0')}
  ON CONFLICT (id) DO UPDATE
  SET status = 'pending', resolved_at = NULL, resolution = NULL, seq = excluded.seq, lease = excluded.lease,
    died_at = excluded.died_at, updated_at = excluded.updated_at,
    total_attempts = d.total_attempts + excluded.total_attempts, max_attempts = excluded.max_attempts,
    lost = d.lost + excluded.lost, redrives = excluded.redrives, http_status = excluded.http_status,
    outcome = excluded.outcome, kind = excluded.kind, reason = excluded.reason, message = excluded.message,
    fingerprint = excluded.fingerprint, service = excluded.service)`

const BURY = hot(sql`
  SELECT redrive.bury($1::timestamptz, $2::bigint, $3::tid[], $4::bigint[], $5::uuid[], $6::integer[], $7::json, $8::json,
    $9::json) AS refused`)

/** Returns the leases that were refused. */
export async function bury(db: Database, batch: readonly Settlement[], shard: string): Promise<Set<Lease>> {
  const { likes, shapes, messages, reasons } = paramsOf(shareFailures(batch.map(buryRow)))
  const { places, leases, ids } = claimsOf(batch)
  const params = [db.now(), shard, places, leases, ids, likes, shapes, messages, reasons]
  return leasesOf(await db.query<Refused>(BURY, params))
}

/** Every dead letter has a failure; the types allow an outcome without one, so the last resort is said in words. */
const NO_FAILURE: Pick<Failure, 'kind' | 'because' | 'type' | 'fingerprint'> = {
  kind: 'permanent',
  because: 'buried without an error',
  type: 'Buried',
  fingerprint: 'v1:buried',
}

export function buryRow(settlement: Settlement): Recorded {
  const row = record(settlement)
  if (row.kind !== undefined) return row
  const { kind, because, type, fingerprint } = NO_FAILURE
  return { ...row, kind, because, error_type: type, fingerprint, message: row.reason }
}
