// Ids that cannot be mixed up. A job's id is a UUIDv7 made by whoever enqueues it, so that a broker can
// carry a job the ledger has never seen; its time part only keeps index inserts close together.
import { randomFillSync } from 'node:crypto'
import { type Clock, systemClock } from './clock.js'

declare const brand: unique symbol
type Branded<T, Name extends string> = T & { readonly [brand]: Name }

export type JobId = Branded<string, 'JobId'>
/** One run of a worker, from its start to its end; it holds the lease of all its jobs. */
export type SessionId = Branded<string, 'SessionId'>
/** A claim's token: given once, never repeated. Every write about a running job must show it. */
export type Lease = Branded<string, 'Lease'>

/** A claim of a job that a broker carries: no claim of the ledger looks like this one. */
export const carriedLease = (number: number): Lease => `carried-${number}` as Lease

export const isCarriedLease = (lease: Lease): boolean => lease.startsWith('carried-')

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export const isJobId = (text: string): text is JobId => UUID.test(text)

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

// One call for random bytes fills many ids: the call costs more than the bytes.
const pool = new Uint8Array(16 * 256)
let used = pool.length

export function newId(clock: Clock = systemClock): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const bytes = pool.subarray(used, used + 16)
  used += 16
  const time = clock.now()
  const hex = (index: number) => HEX[bytes[index] as number] as string
  const timeHex = Math.floor(time).toString(16).padStart(12, '0')
  const version = HEX[((bytes[6] as number) & 0x0f) | 0x70] as string
  const variant = HEX[((bytes[8] as number) & 0x3f) | 0x80] as string
  return (
    `${timeHex.slice(0, 8)}-${timeHex.slice(8)}-${version}${hex(7)}-${variant}${hex(9)}-` +
    `${hex(10)}${hex(11)}${hex(12)}${hex(13)}${hex(14)}${hex(15)}`
  )
}

export const newJobId = (clock?: Clock): JobId => newId(clock) as JobId
