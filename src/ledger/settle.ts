// Writes down the ends of many attempts, one statement for each sort of decision, each fenced by the claims' leases.
// What comes back is what was refused: those jobs belong to someone else now, and nothing was changed (invariant 2).
import type { Settlement } from '../domain/settlement.js'
import { type Database, type Statement, sql } from './database.js'
import { BURY, buryRow } from './settle/bury.js'
import { CANCEL } from './settle/cancel.js'
import { COMPLETE, completeRow } from './settle/complete.js'
import { DEFER, deferRow } from './settle/defer.js'
import { record } from './settle/record.js'

type Row = { id: string; lease: string }
type Sort = { readonly statement: Statement; readonly rows: Row[] }

const key = (row: { id: string; lease: string | number }) => `${row.id} ${row.lease}`

/** Returns the settlements that were refused. `shard`: the tally row of the lane that settles. */
export async function settle(db: Database, batch: readonly Settlement[], shard: string): Promise<Settlement[]> {
  const sorts: Record<'complete' | 'defer' | 'bury' | 'cancel', Sort> = {
    complete: { statement: COMPLETE, rows: [] },
    defer: { statement: DEFER, rows: [] },
    bury: { statement: BURY, rows: [] },
    cancel: { statement: CANCEL, rows: [] },
  }
  // A claim has one end: what is said of it a second time in the same batch is refused like anything that comes late.
  const first = new Map<string, Settlement>()
  for (const settlement of batch) {
    const { decision } = settlement
    if (first.has(key(settlement))) continue
    first.set(key(settlement), settlement)
    switch (decision.type) {
      case 'complete':
        sorts.complete.rows.push(completeRow(settlement))
        break
      case 'retry':
      case 'hold':
      case 'return':
        sorts.defer.rows.push(deferRow({ ...settlement, decision }))
        break
      case 'bury':
        sorts.bury.rows.push(buryRow(settlement))
        break
      case 'cancel':
        sorts.cancel.rows.push(record(settlement))
        break
    }
  }
  const settled = new Set<string>()
  for (const { statement, rows } of Object.values(sorts)) {
    if (rows.length === 0) continue
    for (const row of await db.query<Row>(statement, [JSON.stringify(rows), db.now(), shard])) settled.add(key(row))
  }
  return batch.filter(settlement => first.get(key(settlement)) !== settlement || !settled.has(key(settlement)))
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
