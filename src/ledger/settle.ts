// Writes down the ends of many attempts, one statement for each sort of decision, each fenced by the claims' leases.
// What comes back is what was refused: those jobs belong to someone else now, and nothing was changed (invariant 2).
import type { Decision } from '../domain/decision.js'
import type { Lease } from '../domain/ids.js'
import type { Settlement } from '../domain/settlement.js'
import { type Database, sql } from './database.js'
import { bury } from './settle/bury.js'
import { cancel } from './settle/cancel.js'
import { complete } from './settle/complete.js'
import { defer } from './settle/defer.js'

type Sort = 'complete' | 'defer' | 'bury' | 'cancel'

const SORTS: Readonly<Record<Decision['type'], Sort>> = {
  complete: 'complete',
  retry: 'defer',
  hold: 'defer',
  return: 'defer',
  bury: 'bury',
  cancel: 'cancel',
}

const SETTLE: Readonly<
  Record<Sort, (db: Database, batch: readonly Settlement[], shard: string) => Promise<ReadonlySet<Lease>>>
> = { complete, defer, bury, cancel }

/** Returns the settlements that were refused, in their order. `shard`: the tally row of the lane that settles. */
export async function settle(db: Database, batch: readonly Settlement[], shard: string): Promise<Settlement[]> {
  const { sorts, repeated } = bySort(batch)
  const refused = new Set(repeated)
  for (const [sort, settlements] of sorts) {
    const late = await SETTLE[sort](db, settlements, shard)
    if (late.size > 0) for (const settlement of settlements) if (late.has(settlement.lease)) refused.add(settlement)
  }
  return refused.size === 0 ? [] : batch.filter(settlement => refused.has(settlement))
}

interface Sorted {
  readonly sorts: Iterable<readonly [Sort, readonly Settlement[]]>
  /** A claim has one end: what is said of it a second time in the same batch is refused like anything that comes late. */
  readonly repeated: readonly Settlement[]
}

function bySort(batch: readonly Settlement[]): Sorted {
  const only = onlySortOf(batch)
  if (only !== undefined) return { sorts: [[only, batch]], repeated: [] }
  const sorts = new Map<Sort, Settlement[]>()
  const seen = new Set<Lease>()
  const repeated: Settlement[] = []
  for (const settlement of batch) {
    if (seen.has(settlement.lease)) {
      repeated.push(settlement)
      continue
    }
    seen.add(settlement.lease)
    const sort = SORTS[settlement.decision.type]
    const sorted = sorts.get(sort)
    if (sorted) sorted.push(settlement)
    else sorts.set(sort, [settlement])
  }
  return { sorts, repeated }
}

/**
 * What a batch is of, if that is one thing and no claim is in it twice: mostly so, and told without looking each claim up. Jobs that
 * end as they were claimed have leases that grow.
 */
function onlySortOf(batch: readonly Settlement[]): Sort | undefined {
  const [first] = batch
  if (!first) return undefined
  const sort = SORTS[first.decision.type]
  let before = ''
  for (const { lease, decision } of batch) {
    const grows = lease.length > before.length || (lease.length === before.length && lease > before)
    if (!grows || SORTS[decision.type] !== sort) return undefined
    before = lease
  }
  return sort
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
