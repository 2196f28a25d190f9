// Settling by a function: it is given claims, and answers with the leases that it refused, mostly none.
import type { Lease } from '../../domain/ids.js'
import type { Settlement } from '../../domain/settlement.js'
import { listOf } from '../rows.js'

/** Claims as the functions take them, each list in the order of the batch. `places`: where they said that their jobs lie. */
export const claimsOf = (batch: readonly Settlement[]) => ({
  places: listOf(batch.map(({ receipt }) => (receipt === undefined ? 'NULL' : `"${receipt}"`))),
  leases: listOf(batch.map(({ lease }) => lease)),
  ids: listOf(batch.map(({ id }) => id)),
})

export interface Refused {
  readonly refused: string | number
}

export const leasesOf = (rows: readonly Refused[]): Set<Lease> =>
  new Set(rows.map(({ refused }) => String(refused) as Lease))
