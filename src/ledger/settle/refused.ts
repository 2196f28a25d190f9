// Settling by a function: it is given claims, and answers with the leases that it refused, mostly none.
import type { Lease } from '../../domain/ids.js'
import type { Settlement } from '../../domain/settlement.js'
import { listOf } from '../rows.js'

/** Claims as the functions take them, each list in the order of the batch. `places`: where they said that their jobs lie. */
export const claimsOf = (batch: readonly Settlement[]) => ({
  places: placesOf(batch),
  leases: listOf(batch.map(({ lease }) => lease)),
  ids: listOf(batch.map(({ id }) => id)),
})

/** Quoted, because they have commas; without a text for each where all of them are known, as mostly. */
function placesOf(batch: readonly Settlement[]): string {
  const receipts = batch.map(({ receipt }) => receipt)
  return receipts.includes(undefined)
    ? listOf(receipts.map(receipt => (receipt === undefined ? 'NULL' : `"${receipt}"`)))
    : `{"${receipts.join('","')}"}`
}

export interface Refused {
  readonly refused: string | number
}

export const leasesOf = (rows: readonly Refused[]): Set<Lease> =>
  new Set(rows.map(({ refused }) => String(refused) as Lease))
