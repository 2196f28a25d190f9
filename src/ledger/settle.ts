// Writes down the ends of many attempts, one statement for each sort of decision, each fenced by the claims' leases.
// What comes back is what was refused: those jobs belong to someone else now, and nothing was changed (invariant 2).
import type { Decision } from '../domain/decision.js'
import type { Lease } from '../domain/ids.js'
import type { Settlement } from '../domain/settlement.js'
import { type Database, type Statement, sql } from './database.js'
import { intoHistory } from './into-history.js'
import { listOf } from './rows.js'
import { BURY, buryRows } from './settle/bury.js'
import { CANCEL } from './settle/cancel.js'
import { complete } from './settle/complete.js'
import { DEFER, deferRows } from './settle/defer.js'
import { record } from './settle/record.js'
import { wakeChannel } from './wake-channel.js'

type Sort = 'complete' | 'defer' | 'bury' | 'cancel'

const SORTS: Readonly<Record<Decision['type'], Sort>> = {
  complete: 'complete',
  retry: 'defer',
  hold: 'defer',
  return: 'defer',
  bury: 'bury',
  cancel: 'cancel',
}

type Rows = (batch: readonly Settlement[]) => readonly object[]

const FAILED: Readonly<Record<Exclude<Sort, 'complete'>, { statement: Statement; rows: Rows }>> = {
  defer: { statement: DEFER, rows: deferRows },
  bury: { statement: BURY, rows: buryRows },
  cancel: { statement: CANCEL, rows: batch => batch.map(record) },
}

/** Returns the settlements that were refused, in their order. `shard`: the tally row of the lane that settles. */
export async function settle(db: Database, batch: readonly Settlement[], shard: string): Promise<Settlement[]> {
  const sorts = new Map<Sort, Settlement[]>()
  const seen = new Set<Lease>()
  const refused = new Set<Settlement>()
  for (const settlement of batch) {
    // A claim has one end: what is said of it a second time in the same batch is refused like anything that comes late.
    if (seen.has(settlement.lease)) {
      refused.add(settlement)
      continue
    }
    seen.add(settlement.lease)
    const sort = SORTS[settlement.decision.type]
    const sorted = sorts.get(sort)
    if (sorted) sorted.push(settlement)
    else sorts.set(sort, [settlement])
  }
  for (const [sort, settlements] of sorts) {
    const late = sort === 'complete' ? await complete(db, settlements, shard) : await end(db, sort, settlements, shard)
    if (late.size > 0) for (const settlement of settlements) if (late.has(settlement.lease)) refused.add(settlement)
  }
  return batch.filter(settlement => refused.has(settlement))
}

/** Returns the leases that were refused. */
async function end(db: Database, sort: Exclude<Sort, 'complete'>, batch: readonly Settlement[], shard: string) {
  const { statement, rows } = FAILED[sort]
  const leases = batch.map(settlement => settlement.lease)
  const ids = listOf(batch.map(settlement => settlement.id))
  const params = [JSON.stringify(rows(batch)), db.now(), shard, listOf(leases), ids]
  if (sort === 'defer') params.push(wakeChannel(db))
  const written = await intoHistory<{ lease: string | number }>(db, statement, params)
  const settled = new Set(written.map(({ lease }) => String(lease)))
  return new Set(leases.filter(lease => !settled.has(lease)))
}

const RECORD_STALE = sql`
  UPDATE redrive.attempt a SET stale_outcome = i.outcome, stale_at = coalesce($2::timestamptz, now())
  FROM json_to_recordset($1::json) AS i(id uuid, lease bigint, outcome redrive.attempt_outcome)
  WHERE a.job_id = i.id AND a.lease = i.lease AND a.outcome = 'lost' AND a.stale_outcome IS NULL`

/** Notes on the lost attempts what their workers brought too late. Changes no job. */
export async function recordStale(db: Database, refused: readonly Settlement[]): Promise<void> {
  const rows = refused.map(({ id, lease, outcome }) => ({ id, lease, outcome: outcome.type }))
  await db.query(RECORD_STALE, [JSON.stringify(rows), db.now()])
}
