// Settling by a function: it is given claims, and answers with the leases that it refused, mostly none.
import type { Lease } from '../../domain/ids.js'
import type { Settlement } from '../../domain/settlement.js'
import type { Database, Param, Statement } from '../database.js'
import { listOf } from '../rows.js'

export const claimsOf = (batch: readonly Settlement[]) => ({
  leases: listOf(batch.map(({ lease }) => lease)),
  ids: listOf(batch.map(({ id }) => id)),
})

export async function refusedBy(db: Database, statement: Statement, params: readonly Param[]): Promise<Set<Lease>> {
  const rows = await db.query<{ refused: string | number }>(statement, params)
  return new Set(rows.map(({ refused }) => String(refused) as Lease))
}
